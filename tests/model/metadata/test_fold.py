"""The law of images: replaying what an image writes gives that image, however the records are cut into chunks.

Histories are drawn step by step against the image so far, so that every record is one that a controller could have
written then; the oracle for chunking is the fold in one piece, and for each intermediate image its own snapshot.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.metadata.batches import data_batch, read_batch
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
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
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntityPart,
    RecordedEndpoint,
    RecordedFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from millbeck.metadata.snapshot import read_snapshot, snapshot_batches

NAMES = ("a", "b.c", "b_c", "orders")
BROKERS = (1, 2, 3)


def _uuid(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _next(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    """One record that may follow on ``image``; ``step`` makes ids that were never used."""
    kinds = [_node, _topic, _option, _credential, _other]
    made: MetadataRecord = draw(st.sampled_from(kinds))(draw, image, step)
    return made


def _node(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    node = draw(st.sampled_from(BROKERS))
    broker = image.cluster.broker(node)
    if broker is None or draw(st.integers(0, 3)) == 0:
        return RegisterBrokerRecord(
            broker_id=node,
            broker_epoch=step,
            incarnation_id=_uuid(step),
            end_points=[RecordedEndpoint("PLAINTEXT", "h", 9092, 0)],
            features=[RecordedFeature("metadata.version", 7, 30)],
            rack=draw(st.sampled_from((None, "r"))),
            log_dirs=[_uuid(500 + node)] * draw(st.integers(0, 1)),
        )
    change = BrokerRegistrationChangeRecord(
        broker_id=node,
        broker_epoch=broker.epoch,
        fenced=draw(st.integers(-1, 1)),
        in_controlled_shutdown=draw(st.integers(0, 1)),
        cordoned_log_dirs=draw(st.sampled_from((None, [], [_uuid(7)]))),
    )
    gone = UnregisterBrokerRecord(broker_id=node, broker_epoch=broker.epoch)
    chosen: MetadataRecord = draw(st.sampled_from((change, change, gone, RegisterControllerRecord(controller_id=node))))
    return chosen


def _topic(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    name = draw(st.sampled_from(NAMES))
    topic = image.topics.named(name)
    if topic is None:
        return TopicRecord(name=name, topic_id=_uuid(1000 + step))
    partition_id = draw(st.integers(0, 2))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return RemoveTopicRecord(topic_id=topic.topic_id)
    if kind == 1:
        return ClearElrRecord(topic_name=draw(st.sampled_from((name, ""))))
    if partition_id not in topic.partitions:
        return PartitionRecord(
            partition_id=partition_id,
            topic_id=topic.topic_id,
            replicas=[1, 2],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[_uuid(501), _uuid(502)] * draw(st.integers(0, 1)),
            eligible_leader_replicas=draw(st.sampled_from((None, [2]))),
        )
    return PartitionChangeRecord(
        partition_id=partition_id,
        topic_id=topic.topic_id,
        isr=draw(st.sampled_from((None, [1], [2, 1]))),
        leader=draw(st.sampled_from((-2, -1, 1, 2))),
        last_known_elr=draw(st.sampled_from((None, [], [1]))),
    )


def _option(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    value = draw(st.sampled_from((None, "1", "2")))
    option = draw(st.sampled_from(("retention.ms", "segment.ms")))
    resource_type, resource_name = draw(st.sampled_from(((2, "a"), (2, "orders"), (4, ""), (4, "1"), (32, "g"))))
    return ConfigRecord(resource_type=resource_type, resource_name=resource_name, name=option, value=value)


def _credential(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    choices: list[MetadataRecord] = [
        AccessControlEntryRecord(id=_uuid(step), principal="User:u"),
        UserScramCredentialRecord(name="u", mechanism=draw(st.integers(1, 2)), iterations=step),
        RemoveUserScramCredentialRecord(name="u", mechanism=1),
        DelegationTokenRecord(token_id="t", owner="User:o", renewers=["User:r"], max_timestamp=step),
        RemoveDelegationTokenRecord(token_id="t"),
    ]
    choices += [RemoveAccessControlEntryRecord(id=entry) for entry in sorted(image.acls.by_id)[:1]]
    chosen: MetadataRecord = draw(st.sampled_from(choices))
    return chosen


def _other(draw: Any, image: MetadataImage, step: int) -> MetadataRecord:
    entity = [QuotaEntityPart("user", draw(st.sampled_from((None, "u"))))]
    chosen: MetadataRecord = draw(
        st.sampled_from(
            (
                NoOpRecord(),
                ProducerIdsRecord(next_producer_id=step * 1000),
                FeatureLevelRecord(name="metadata.version", feature_level=30),
                FeatureLevelRecord(name="f", feature_level=draw(st.integers(0, 2))),
                ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1.5, remove=draw(st.booleans())),
            )
        )
    )
    return chosen


def _advance(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    offset = image.offset + len(records)
    return advance(image, records, offset=offset, epoch=1, timestamp_ms=offset)[0]


@st.composite
def histories(draw: Any) -> list[MetadataRecord]:
    """Records that follow on each other, some of them inside transactions."""
    records: list[MetadataRecord] = []
    image = EMPTY
    for step in range(draw(st.integers(0, 25))):
        if draw(st.integers(0, 9)) > 0:
            chunk = [_next(draw, image, step)]
        else:
            inside = _next(draw, image, step)
            end = draw(st.sampled_from((EndTransactionRecord(), AbortTransactionRecord())))
            chunk = [BeginTransactionRecord(), inside, end]
        records += chunk
        image = _advance(image, chunk)
    return records


@settings(max_examples=120, deadline=None)
@given(histories(), st.data())
def test_any_chunking_gives_the_same_image(records: list[MetadataRecord], data: st.DataObject) -> None:
    whole = _advance(EMPTY, records)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=6)))
    image = EMPTY
    for start, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        chunk = records[start:end]
        if chunk:
            # What is replayed is what the log would give back, not the objects that were written.
            chunk = list(read_batch(data_batch(chunk, base_offset=0, epoch=1, timestamp_ms=0)).records)
        before = image
        image = _advance(image, chunk)
        assert _delta_explains(before, image, chunk)
    assert image == whole


def _delta_explains(before: MetadataImage, after: MetadataImage, chunk: list[MetadataRecord]) -> bool:
    """Whatever differs between two images is named by the delta."""
    _, delta = advance(before, chunk, offset=after.offset, epoch=1, timestamp_ms=after.offset)
    topics = {*before.topics.by_id, *after.topics.by_id}
    different = {topic for topic in topics if before.topics.by_id.get(topic) != after.topics.by_id.get(topic)}
    brokers = {*before.cluster.brokers, *after.cluster.brokers}
    moved = {node for node in brokers if before.cluster.brokers.get(node) != after.cluster.brokers.get(node)}
    resources = {*before.configs.by_resource, *after.configs.by_resource}
    set_anew = {one for one in resources if before.configs.of(one) != after.configs.of(one)}
    return (
        different == {*delta.topics.changed_topic_ids, *delta.topics.deleted}
        and moved <= set(delta.cluster.brokers.changed)
        and set_anew <= set(delta.configs.changed)
    )


@settings(max_examples=120, deadline=None)
@given(histories(), st.integers(1, 7))
def test_an_image_is_what_its_own_records_make(records: list[MetadataRecord], chunk_size: int) -> None:
    image = _advance(EMPTY, records)
    written = list(image.records())
    restored = EMPTY
    for start in range(0, len(written), chunk_size):
        restored, _ = advance(
            restored,
            written[start : start + chunk_size],
            offset=image.offset,
            epoch=image.epoch,
            timestamp_ms=image.timestamp_ms,
        )
    if written:
        assert restored == image
    else:
        assert list(restored.records()) == []


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_snapshot_file_restores_its_image(records: list[MetadataRecord]) -> None:
    image = _advance(EMPTY, records)
    content = b"".join(snapshot_batches(image.records(), epoch=1, last_contained_log_timestamp=1, now_ms=2))
    restored, _ = advance(
        EMPTY,
        read_snapshot(content).records,
        offset=image.offset,
        epoch=image.epoch,
        timestamp_ms=image.timestamp_ms,
    )
    assert restored == image
