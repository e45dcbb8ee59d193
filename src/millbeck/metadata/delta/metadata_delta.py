"""Advances the metadata image: records are replayed onto a delta, which makes the next image.

`advance` is the only way an image changes: while running, on start and when loading a snapshot. Records may be passed
in chunks of any size with the same result. Records of a metadata transaction have no effect before its end; until then
they are kept in ``image.open_transaction``. A record that contradicts the image, or is of a type that cannot be
replayed, raises `MetadataFault`: the image would no longer match the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from millbeck.kernel.ids import Uuid
from millbeck.metadata.delta.client_quotas import ClientQuotasDelta
from millbeck.metadata.delta.cluster import ClusterDelta
from millbeck.metadata.delta.configs import ConfigsDelta
from millbeck.metadata.delta.map_changes import MapDelta
from millbeck.metadata.delta.topics import TopicsDelta
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image import (
    AccessControlEntry,
    AclsImage,
    DelegationToken,
    DelegationTokensImage,
    FeaturesImage,
    MetadataImage,
    ProducerIdsImage,
    ScramCredential,
    ScramImage,
)
from millbeck.metadata.records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)


def advance(
    image: MetadataImage, records: Iterable[MetadataRecord], *, offset: int, epoch: int, timestamp_ms: int
) -> tuple[MetadataImage, MetadataDelta]:
    """Return the image after ``records``, the last of which is at ``offset``, and the changes."""
    fold = IncrementalReplay(image)
    fold.add(records)
    return fold.finish(offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)


class IncrementalReplay:
    """Incremental `advance`, for more records than should be replayed without yielding to the event loop."""

    __slots__ = ("_delta", "_pending")

    def __init__(self, image: MetadataImage) -> None:
        self._delta = MetadataDelta(image)
        self._pending = None if image.open_transaction is None else list(image.open_transaction)

    def add(self, records: Iterable[MetadataRecord]) -> None:
        delta, pending = self._delta, self._pending
        for record in records:
            match record:
                case BeginTransactionRecord():
                    if pending is not None:
                        raise MetadataFault("a metadata transaction begins before the previous one ended")
                    pending = []
                case EndTransactionRecord() | AbortTransactionRecord():
                    if pending is None:
                        raise MetadataFault("a metadata transaction ends without a begin")
                    if isinstance(record, EndTransactionRecord):
                        for inner in pending:
                            delta.replay(inner)
                    pending = None
                case _ if pending is not None:
                    pending.append(record)
                case _:
                    delta.replay(record)
        self._pending = pending

    def finish(self, *, offset: int, epoch: int, timestamp_ms: int) -> tuple[MetadataImage, MetadataDelta]:
        """Return the image and the delta; called once, after the last `add`."""
        delta = self._delta
        open_transaction = None if self._pending is None else tuple(self._pending)
        delta.image = delta.apply(
            offset=offset, epoch=epoch, timestamp_ms=timestamp_ms, open_transaction=open_transaction
        )
        return delta.image, delta


class MetadataDelta:
    """The changes of a range of records: ``before`` is the image before them, ``image`` the one after."""

    __slots__ = (
        "acls",
        "before",
        "client_quotas",
        "cluster",
        "configs",
        "delegation_tokens",
        "features",
        "image",
        "next_producer_id",
        "scram",
        "topics",
    )

    def __init__(self, before: MetadataImage) -> None:
        self.before = before
        self.image = before
        self.features: MapDelta[str, int] = MapDelta(before.features.levels)
        self.cluster = ClusterDelta(before.cluster)
        self.topics = TopicsDelta(before.topics)
        self.configs = ConfigsDelta(before.configs)
        self.client_quotas = ClientQuotasDelta(before.client_quotas)
        self.next_producer_id: int | None = None
        self.acls: MapDelta[Uuid, AccessControlEntry] = MapDelta(before.acls.by_id)
        self.scram: MapDelta[tuple[int, str], ScramCredential] = MapDelta(before.scram.by_user)
        self.delegation_tokens: MapDelta[str, DelegationToken] = MapDelta(before.delegation_tokens.by_id)

    def replay(self, record: MetadataRecord) -> None:
        replay_one = _REPLAY.get(type(record))
        if replay_one is None:
            raise MetadataFault(f"cannot replay {type(record).__name__}")
        replay_one(self, record)

    def apply(
        self, *, offset: int, epoch: int, timestamp_ms: int, open_transaction: tuple[MetadataRecord, ...] | None
    ) -> MetadataImage:
        before = self.before
        return MetadataImage(
            offset=offset,
            epoch=epoch,
            timestamp_ms=timestamp_ms,
            features=FeaturesImage(levels=self.features.apply()) if self.features.changed else before.features,
            cluster=self.cluster.apply(),
            topics=self.topics.apply(),
            configs=self.configs.apply(),
            client_quotas=self.client_quotas.apply(),
            producer_ids=(
                before.producer_ids
                if self.next_producer_id is None
                else ProducerIdsImage(next_producer_id=self.next_producer_id)
            ),
            acls=AclsImage(by_id=self.acls.apply()) if self.acls.changed else before.acls,
            scram=ScramImage(by_user=self.scram.apply()) if self.scram.changed else before.scram,
            delegation_tokens=(
                DelegationTokensImage(by_id=self.delegation_tokens.apply())
                if self.delegation_tokens.changed
                else before.delegation_tokens
            ),
            open_transaction=open_transaction,
        )

    def _feature_level(self, record: FeatureLevelRecord) -> None:
        if record.feature_level == 0:
            self.features.remove(record.name)
        else:
            self.features.put(record.name, record.feature_level)

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        self.configs.remove_topic(self.topics.remove(record))

    def _producer_ids(self, record: ProducerIdsRecord) -> None:
        self.next_producer_id = record.next_producer_id

    def _acl(self, record: AccessControlEntryRecord) -> None:
        entry = AccessControlEntry(
            resource_type=record.resource_type,
            resource_name=record.resource_name,
            pattern_type=record.pattern_type,
            principal=record.principal,
            host=record.host,
            operation=record.operation,
            permission_type=record.permission_type,
        )
        self.acls.put(record.id, entry)

    def _remove_acl(self, record: RemoveAccessControlEntryRecord) -> None:
        if self.acls.get(record.id) is None:
            raise MetadataFault(f"removal of an access control entry that does not exist: {record!r}")
        self.acls.remove(record.id)

    def _scram(self, record: UserScramCredentialRecord) -> None:
        credential = ScramCredential(
            salt=record.salt,
            stored_key=record.stored_key,
            server_key=record.server_key,
            iterations=record.iterations,
        )
        self.scram.put((record.mechanism, record.name), credential)

    def _remove_scram(self, record: RemoveUserScramCredentialRecord) -> None:
        self.scram.remove((record.mechanism, record.name))

    def _delegation_token(self, record: DelegationTokenRecord) -> None:
        token = DelegationToken(
            owner=record.owner,
            requester=record.requester,
            renewers=tuple(record.renewers),
            issue_timestamp=record.issue_timestamp,
            max_timestamp=record.max_timestamp,
            expiration_timestamp=record.expiration_timestamp,
        )
        self.delegation_tokens.put(record.token_id, token)

    def _remove_delegation_token(self, record: RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.remove(record.token_id)

    def _nothing(self, record: NoOpRecord | ZkMigrationStateRecord) -> None:
        """Ignore no-op records, and the state of a ZooKeeper migration."""


_REPLAY: dict[type[Any], Callable[[MetadataDelta, Any], None]] = {
    RegisterBrokerRecord: lambda delta, record: delta.cluster.register_broker(record),
    UnregisterBrokerRecord: lambda delta, record: delta.cluster.unregister_broker(record),
    FenceBrokerRecord: lambda delta, record: delta.cluster.fence(record),
    UnfenceBrokerRecord: lambda delta, record: delta.cluster.unfence(record),
    BrokerRegistrationChangeRecord: lambda delta, record: delta.cluster.change_broker(record),
    RegisterControllerRecord: lambda delta, record: delta.cluster.register_controller(record),
    TopicRecord: lambda delta, record: delta.topics.create(record),
    PartitionRecord: lambda delta, record: delta.topics.put_partition(record),
    PartitionChangeRecord: lambda delta, record: delta.topics.change_partition(record),
    ClearElrRecord: lambda delta, record: delta.topics.clear_eligible_leaders(record),
    ConfigRecord: lambda delta, record: delta.configs.set_option(record),
    ClientQuotaRecord: lambda delta, record: delta.client_quotas.set_quota(record),
    RemoveTopicRecord: MetadataDelta._remove_topic,
    FeatureLevelRecord: MetadataDelta._feature_level,
    ProducerIdsRecord: MetadataDelta._producer_ids,
    AccessControlEntryRecord: MetadataDelta._acl,
    RemoveAccessControlEntryRecord: MetadataDelta._remove_acl,
    UserScramCredentialRecord: MetadataDelta._scram,
    RemoveUserScramCredentialRecord: MetadataDelta._remove_scram,
    DelegationTokenRecord: MetadataDelta._delegation_token,
    RemoveDelegationTokenRecord: MetadataDelta._remove_delegation_token,
    NoOpRecord: MetadataDelta._nothing,
    ZkMigrationStateRecord: MetadataDelta._nothing,
}
