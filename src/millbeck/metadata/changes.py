"""Descriptions of metadata changes for the audit: the resource, and its state before and after.

They contain no secrets: keys of users are omitted, and values of secret configs are masked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.client_quotas import quota_entity
from millbeck.metadata.image.configs import ConfigResource
from millbeck.metadata.image.configs import ResourceType as ConfigType
from millbeck.metadata.image.topics import PartitionRegistration
from millbeck.metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from millbeck.security.acls import AccessControlEntry, name_of
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.security.sasl.scram_messages import BY_NUMBER

MASKED: Final = "[hidden]"

State = Mapping[str, object] | str | float | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: str
    """The kind: topic, partition, config, acl, user, quota, token, feature or broker."""
    name: str
    before: State = None
    """The state before; None if it did not exist."""
    after: State = None
    """The state after; None if it was removed."""


def changes_of(
    before: MetadataImage, records: Iterable[MetadataRecord], is_secret: Callable[[int, str], bool]
) -> Iterator[Change]:
    """The changes that records make to an image. ``is_secret`` gets the resource type and the name of a config."""
    created: dict[bytes, str] = {}
    for record in records:
        match record:
            case TopicRecord():
                created[record.topic_id] = record.name
            case PartitionRecord():
                yield _new_partition(before, record, created)
            case RemoveTopicRecord():
                yield _removed_topic(before, record)
            case PartitionChangeRecord():
                yield _partition_change(before, record)
            case ConfigRecord():
                yield _config(before, record, is_secret)
            case ClientQuotaRecord():
                yield _quota(before, record)
            case FeatureLevelRecord():
                old = before.features.level(record.name)
                yield Change(kind="feature", name=record.name, before=old, after=record.feature_level)
            case UnregisterBrokerRecord():
                yield Change(kind="broker", name=str(record.broker_id), before="registered")
            case (
                AccessControlEntryRecord()
                | RemoveAccessControlEntryRecord()
                | UserScramCredentialRecord()
                | RemoveUserScramCredentialRecord()
                | DelegationTokenRecord()
                | RemoveDelegationTokenRecord()
            ):
                yield _of_security(before, record)


def _of_security(before: MetadataImage, record: Any) -> Change:
    match record:
        case AccessControlEntryRecord():
            return Change(kind="acl", name=_pattern(record), after=_acl(record))
        case RemoveAccessControlEntryRecord():
            entry = before.acls.by_id.get(record.id)
            if entry is None:
                return Change(kind="acl", name="")
            return Change(kind="acl", name=_pattern(entry), before=_acl(entry))
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            found = before.scram.by_user.get((record.mechanism, record.name))
            mechanism = (
                BY_NUMBER[record.mechanism].mechanism_name if record.mechanism in BY_NUMBER else str(record.mechanism)
            )
            after = None
            if isinstance(record, UserScramCredentialRecord):
                after = {"mechanism": mechanism, "iterations": record.iterations}
            old = None if found is None else {"mechanism": mechanism, "iterations": found.iterations}
            return Change(kind="user", name=record.name, before=old, after=after)
        case _:
            return _token(before, record)


def _token(before: MetadataImage, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> Change:
    token = before.delegation_tokens.by_id.get(record.token_id)
    old = None
    if token is not None:
        old = {"owner": token.owner, "renewers": list(token.renewers), "expires_ms": token.expiration_timestamp}
    if isinstance(record, RemoveDelegationTokenRecord):
        return Change(kind="token", name=record.token_id, before=old)
    new = {"owner": record.owner, "renewers": list(record.renewers), "expires_ms": record.expiration_timestamp}
    return Change(kind="token", name=record.token_id, before=old, after=new)


def _new_partition(before: MetadataImage, record: PartitionRecord, created: Mapping[bytes, str]) -> Change:
    topic = before.topics.with_id(record.topic_id)
    name = topic.name if topic is not None else created.get(record.topic_id, "")
    return Change(
        kind="partition",
        name=f"{name}-{record.partition_id}",
        after=_partition(PartitionRegistration.from_record(record)),
    )


def _removed_topic(before: MetadataImage, record: RemoveTopicRecord) -> Change:
    topic = before.topics.with_id(record.topic_id)
    if topic is None:
        return Change(kind="topic", name="")
    state = {"partitions": len(topic.partitions), "configs": dict(before.configs.of_topic(topic.name))}
    return Change(kind="topic", name=topic.name, before=state)


def _partition_change(before: MetadataImage, record: PartitionChangeRecord) -> Change:
    topic = before.topics.with_id(record.topic_id)
    partition = None if topic is None else topic.partitions.get(record.partition_id)
    if topic is None or partition is None:
        return Change(kind="partition", name=str(record.partition_id))
    old, new = _partition(partition), _partition(partition.changed(record))
    changed = [name for name in old if old[name] != new[name]]
    return Change(
        kind="partition",
        name=f"{topic.name}-{record.partition_id}",
        before={name: old[name] for name in changed},
        after={name: new[name] for name in changed},
    )


def _partition(partition: PartitionRegistration) -> dict[str, object]:
    return {
        "replicas": list(partition.replicas),
        "adding": list(partition.adding_replicas),
        "removing": list(partition.removing_replicas),
        "leader": partition.leader,
        "isr": list(partition.isr),
    }


def _config(before: MetadataImage, record: ConfigRecord, is_secret: Callable[[int, str], bool]) -> Change:
    resource = ConfigResource(record.resource_type, record.resource_name)
    old, new = before.configs.of(resource).get(record.name), record.value
    if is_secret(record.resource_type, record.name):
        old, new = (None if each is None else MASKED for each in (old, new))
    try:
        kind = ConfigType(record.resource_type).name.lower().replace("_", "-")
    except ValueError:
        kind = str(record.resource_type)
    name = record.resource_name or "(all)"
    return Change(kind="config", name=f"{kind}:{name}:{record.name}", before=old, after=new)


def _quota(before: MetadataImage, record: ClientQuotaRecord) -> Change:
    entity = quota_entity(record.entity)
    shown = ",".join(f"{kind}={'(default)' if name is None else name}" for kind, name in entity)
    old = before.client_quotas.by_entity.get(entity, {}).get(record.key)
    return Change(kind="quota", name=f"{shown}:{record.key}", before=old, after=None if record.remove else record.value)


def _pattern(entry: AccessControlEntryRecord | AccessControlEntry) -> str:
    pattern = "*" if entry.pattern_type == PatternType.PREFIXED else ""
    return f"{name_of(ResourceType, entry.resource_type)}:{entry.resource_name}{pattern}"


def _acl(entry: AccessControlEntryRecord | AccessControlEntry) -> dict[str, object]:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": name_of(Operation, entry.operation),
        "permission": name_of(Permission, entry.permission_type),
        "pattern": name_of(PatternType, entry.pattern_type),
    }
