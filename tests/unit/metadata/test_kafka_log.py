"""A metadata log and a snapshot that Apache Kafka 4.3 wrote: read, replayed, and written again byte for byte.

The cluster was one node with every feature but metadata.version at 0. It registered, created topics with options, added
partitions, changed options of a topic and of a broker, was refused other things, and was stopped in good order.
"""

from __future__ import annotations

from pathlib import Path

from millbeck.metadata.batches import control_batch, data_batch, read_batches
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.snapshot import parse_name, read_snapshot

DIRECTORY = Path(__file__).with_name("kafka_log")
LOG = (DIRECTORY / "00000000000000000000.log").read_bytes()
[SNAPSHOT] = DIRECTORY.glob("*.checkpoint")


def _replayed(upto_offset: int) -> MetadataImage:
    image = EMPTY
    for batch in read_batches(LOG):
        if batch.last_offset < upto_offset:
            image, _ = advance(
                image, batch.records, offset=batch.last_offset, epoch=batch.epoch, timestamp_ms=batch.timestamp_ms
            )
    return image


def test_the_log_is_written_as_it_was_read() -> None:
    written = b""
    for batch in read_batches(LOG):
        place = {"base_offset": batch.base_offset, "epoch": batch.epoch, "timestamp_ms": batch.timestamp_ms}
        if batch.control_values:
            written += control_batch(batch.control_values, **place)
        else:
            written += data_batch(batch.records, **place)
    assert written == LOG


def test_the_image_says_what_was_done() -> None:
    image = _replayed(80)
    assert {name: len(topic.partitions) for name, topic in image.topics.by_name.items()} == {
        "alpha": 3,
        "beta": 3,
        "g.h": 3,
    }
    assert image.features.levels == {"metadata.version": 30}
    assert image.configs.of_topic("alpha") == {"cleanup.policy": "compact"}
    assert image.configs.of_broker(1) == {"log.retention.ms": "1", "nope": "/x"}
    broker = image.cluster.brokers[1]
    assert (broker.epoch, broker.is_active, broker.cordoned_directories) == (5, True, ())
    assert list(image.cluster.controllers) == [1]
    assert {partition.leader for partition in image.topics.by_name["beta"].partitions.values()} == {1}


def test_the_stopped_node_leads_nothing() -> None:
    image = _replayed(1000)
    broker = image.cluster.brokers[1]
    assert (broker.is_fenced, broker.in_controlled_shutdown) == (True, True)
    partition = image.topics.by_name["alpha"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.isr) == (-1, 1, (1,))


def test_the_snapshot_is_the_log_up_to_its_end() -> None:
    snapshot_id = parse_name(SNAPSHOT.name)
    assert snapshot_id is not None
    image = _replayed(snapshot_id.end_offset)
    snapshot = read_snapshot(SNAPSHOT.read_bytes())
    restored, _ = advance(
        EMPTY, snapshot.records, offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms
    )
    assert restored == image
    assert snapshot.last_contained_log_timestamp == image.timestamp_ms
    assert len(list(image.records())) == len(snapshot.records)
