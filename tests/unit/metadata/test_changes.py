"""What people are told of a change: the resource, before and after, and never a secret."""

from __future__ import annotations

from millbeck.metadata.changes import MASKED, Change, changes_of
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.image.configs import ResourceType as ConfigType
from millbeck.metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    QuotaEntityPart,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

TOPIC = b"t" * 16
ACL = AccessControlEntryRecord(
    id=b"a" * 16,
    resource_type=2,
    resource_name="ord",
    pattern_type=4,
    principal="User:a",
    host="*",
    operation=3,
    permission_type=3,
)
USER = UserScramCredentialRecord(
    name="alice", mechanism=2, salt=b"SALT", stored_key=b"STORED-KEY", server_key=b"SERVER-KEY", iterations=4096
)
TOKEN = DelegationTokenRecord(
    owner="User:a",
    requester="User:a",
    renewers=["User:b"],
    issue_timestamp=1,
    max_timestamp=9,
    expiration_timestamp=5,
    token_id="id",
)
PARTITION = PartitionRecord(
    partition_id=0, topic_id=TOPIC, replicas=[1, 2], isr=[1, 2], leader=1, leader_epoch=0, partition_epoch=0
)


def after(*records: MetadataRecord) -> MetadataImage:
    image, _ = advance(EMPTY, records, offset=1, epoch=1, timestamp_ms=1)
    return image


def changes(image: MetadataImage, *records: MetadataRecord) -> list[Change]:
    return list(changes_of(image, records, lambda kind, name: "password" in name))


def test_topics_and_partitions() -> None:
    created = changes(EMPTY, TopicRecord(name="t", topic_id=TOPIC), PARTITION)
    assert [(each.kind, each.name, each.before) for each in created] == [("partition", "t-0", None)]
    image = after(TopicRecord(name="t", topic_id=TOPIC), PARTITION)
    (moved,) = changes(image, PartitionChangeRecord(partition_id=0, topic_id=TOPIC, leader=2))
    assert moved == Change(kind="partition", name="t-0", before={"leader": 1}, after={"leader": 2})
    (removed,) = changes(image, RemoveTopicRecord(topic_id=TOPIC))
    assert removed == Change(kind="topic", name="t", before={"partitions": 1, "configs": {}})


def test_configs_with_their_secrets_masked() -> None:
    kind = int(ConfigType.TOPIC)
    plain = ConfigRecord(resource_type=kind, resource_name="t", name="retention.ms", value="1")
    image = after(plain, ConfigRecord(resource_type=4, resource_name="", name="x.password", value="OLD-SECRET"))
    (changed,) = changes(image, ConfigRecord(resource_type=kind, resource_name="t", name="retention.ms", value="2"))
    assert changed == Change(kind="config", name="topic:t:retention.ms", before="1", after="2")
    (secret,) = changes(image, ConfigRecord(resource_type=4, resource_name="", name="x.password", value="NEW-SECRET"))
    assert secret == Change(kind="config", name="broker:(all):x.password", before=MASKED, after=MASKED)
    (removed,) = changes(image, ConfigRecord(resource_type=kind, resource_name="t", name="retention.ms", value=None))
    assert (removed.before, removed.after) == ("1", None)


def test_acls_users_and_tokens_show_no_keys() -> None:
    (created,) = changes(EMPTY, ACL)
    assert created.name == "TOPIC:ord*"
    assert created.after == {
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
        "pattern": "PREFIXED",
    }
    (removed,) = changes(after(ACL), RemoveAccessControlEntryRecord(id=ACL.id))
    assert (removed.before, removed.after) == (created.after, None)
    (user,) = changes(after(USER), USER)
    assert user.before == user.after == {"mechanism": "SCRAM-SHA-512", "iterations": 4096}
    (gone,) = changes(after(USER), RemoveUserScramCredentialRecord(name="alice", mechanism=2))
    assert (gone.name, gone.after) == ("alice", None)
    (token,) = changes(EMPTY, TOKEN)
    assert token.after == {"owner": "User:a", "renewers": ["User:b"], "expires_ms": 5}
    (expired,) = changes(after(TOKEN), RemoveDelegationTokenRecord(token_id="id"))
    assert (expired.before, expired.after) == (token.after, None)
    for secret in ("SALT", "STORED-KEY", "SERVER-KEY"):
        assert secret not in repr([created, removed, user, gone, token, expired])


def test_quotas_and_features() -> None:
    entity = [QuotaEntityPart(entity_type="user", entity_name="a"), QuotaEntityPart("client-id", None)]
    quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=10.0, remove=False)
    (set_,) = changes(EMPTY, quota)
    assert (set_.name, set_.before, set_.after) == ("client-id=(default),user=a:producer_byte_rate", None, 10.0)
    removal = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=0.0, remove=True)
    (removed,) = changes(after(quota), removal)
    assert (removed.before, removed.after) == (10.0, None)
    (level,) = changes(after(FeatureLevelRecord("group.version", 0)), FeatureLevelRecord("group.version", 1))
    assert (level.kind, level.before, level.after) == ("feature", 0, 1)
