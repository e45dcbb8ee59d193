"""Compute the delta between two metadata images, to publish a loaded snapshot.

Subscribers are driven by deltas. `difference` generates the records that turn the image they know into the loaded one,
so that they see exactly what was removed, added and changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from millbeck.metadata.delta import MetadataDelta, advance
from millbeck.metadata.framing import encode
from millbeck.metadata.image import MetadataImage, ResourceType
from millbeck.metadata.records import (
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    UnregisterBrokerRecord,
)


def step_to(before: MetadataImage, after: MetadataImage) -> tuple[MetadataImage, MetadataDelta]:
    """``after``, and the delta from ``before`` to it."""
    start, end = replace(before, open_transaction=None), replace(after, open_transaction=None)
    _, delta = advance(
        start, difference(start, end), offset=after.offset, epoch=after.epoch, timestamp_ms=after.timestamp_ms
    )
    delta.image = replace(delta.image, open_transaction=after.open_transaction)
    return delta.image, delta


def difference(before: MetadataImage, after: MetadataImage) -> list[MetadataRecord]:
    """The records that turn ``before`` into ``after``; neither image is inside a metadata transaction."""
    gone = {topic.name for topic_id, topic in before.topics.by_id.items() if topic_id not in after.topics.by_id}
    known = {encode(record) for record in before.records() if not _goes_with(record, gone)}
    records = [*_removals(before, after, gone)]
    records += [record for record in after.records() if encode(record) not in known]
    return records


def _goes_with(record: MetadataRecord, topics: set[str]) -> bool:
    """Whether the record is a config of a removed topic; it is removed even if a new topic of that name has the same
    config."""
    return (
        isinstance(record, ConfigRecord)
        and record.resource_type == ResourceType.TOPIC
        and record.resource_name in topics
    )


def _removals(before: MetadataImage, after: MetadataImage, gone: set[str]) -> Iterator[MetadataRecord]:
    for name in before.features.levels:
        if name not in after.features.levels:
            yield FeatureLevelRecord(name=name, feature_level=0)
    for broker_id, broker in before.cluster.brokers.items():
        if broker_id not in after.cluster.brokers:
            yield UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
    for topic_id in before.topics.by_id:
        if topic_id not in after.topics.by_id:
            yield RemoveTopicRecord(topic_id=topic_id)
    for resource, options in before.configs.by_resource.items():
        for name in options:
            removal = ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=None)
            if name not in after.configs.by_resource.get(resource, ()) and not _goes_with(removal, gone):
                yield removal
    still = {(str(each.entity), each.key) for each in after.client_quotas.records()}
    for quota in before.client_quotas.records():
        if (str(quota.entity), quota.key) not in still:
            yield ClientQuotaRecord(entity=quota.entity, key=quota.key, remove=True)
    for entry_id in before.acls.by_id:
        if entry_id not in after.acls.by_id:
            yield RemoveAccessControlEntryRecord(id=entry_id)
    for mechanism, user in before.scram.by_user:
        if (mechanism, user) not in after.scram.by_user:
            yield RemoveUserScramCredentialRecord(name=user, mechanism=mechanism)
    for token_id in before.delegation_tokens.by_id:
        if token_id not in after.delegation_tokens.by_id:
            yield RemoveDelegationTokenRecord(token_id=token_id)
