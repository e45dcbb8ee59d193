from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.metadata.batches import data_batch
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ConfigRecord
from millbeck.metadata.snapshot import SnapshotId, snapshot_batches
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.metadata_loading import METADATA_PARTITION, METADATA_TOPIC_ID, load
from millbeck.storage.producer_state import Origin


def _set(value: str) -> Any:
    record = ConfigRecord(resource_type=4, resource_name="", name="x", value=value)
    return lambda image: Result(response=None, records=[record])


def _value(image: MetadataImage) -> str | None:
    return image.configs.of_all_brokers().get("x")


def test_the_log_is_where_and_what_kafka_has_it(metadata_node: Any) -> None:
    driver = metadata_node.make()
    assert driver.log.topic_partition == METADATA_PARTITION
    assert driver.log.directory.endswith("/__cluster_metadata-0")
    driver.log.flush()
    assert driver.log.topic_id is METADATA_TOPIC_ID
    assert metadata_node.content("partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_nothing_is_removed_for_its_age(metadata_node: Any) -> None:
    driver = metadata_node.make()
    assert (driver.log.config.retention_ms, driver.log.config.retention_bytes) == (-1, -1)


def test_an_empty_log_is_an_empty_image(metadata_node: Any) -> None:
    log = metadata_node.make().log
    loaded = load(metadata_node.files, log)
    assert list(loaded.image.records()) == []
    assert (loaded.snapshot_id, loaded.tail_bytes) == (None, 0)


def test_a_snapshot_and_the_log_after_it_are_one_delta(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(_set("1"))
        image = driver.image
        batches = list(snapshot_batches(image.records(), epoch=1, last_contained_log_timestamp=8, now_ms=9))
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        metadata_files.write_snapshot(metadata_node.files, driver.log.directory, snapshot_id, batches)
        loaded = load(metadata_node.files, driver.log)
        assert (loaded.snapshot_id, loaded.tail_bytes) == (snapshot_id, 0)
        assert (loaded.image.offset, loaded.image.timestamp_ms) == (image.offset, 8)
        await driver.submit(_set("2"))
        loaded = load(metadata_node.files, driver.log)
        assert _value(loaded.image) == "2"
        assert loaded.image == driver.image
        assert loaded.tail_bytes > 0
        assert loaded.delta.features.changed == {"metadata.version": 30}

    asyncio.run(scenario())


def test_a_log_that_ends_before_its_snapshot_begins_anew_after_it(metadata_node: Any) -> None:
    log = metadata_node.make().log
    records = [ConfigRecord(resource_type=4, resource_name="", name="x", value="1")]
    batches = list(snapshot_batches(records, epoch=3, last_contained_log_timestamp=8, now_ms=9))
    metadata_files.write_snapshot(metadata_node.files, log.directory, SnapshotId(50, 3), batches)
    loaded = load(metadata_node.files, log)
    assert (log.log_start_offset, log.end_offset) == (50, 50)
    assert (loaded.image.offset, loaded.image.epoch, _value(loaded.image)) == (49, 3, "1")


def test_a_gap_between_snapshot_and_log_is_a_fault(metadata_node: Any) -> None:
    log = metadata_node.make().log
    log.truncate_fully_and_start_at(10)
    with pytest.raises(MetadataFault, match="begins at offset 10"):
        load(metadata_node.files, log)


def test_a_long_log_is_read_in_pieces(metadata_node: Any) -> None:
    log = metadata_node.make().log
    for index in range(5):
        records = [ConfigRecord(resource_type=4, resource_name="", name=f"{index}", value="v" * (4 << 20))]
        batch = data_batch(records, base_offset=0, epoch=1, timestamp_ms=1)
        log.stage(batch, leader_epoch=1, now_ms=1, origin=Origin.QUORUM)
        log.write_staged()
    image = load(metadata_node.files, log).image
    assert sorted(image.configs.of_all_brokers()) == ["0", "1", "2", "3", "4"]
    assert image.offset == 4
