"""What a leader hands out, and how long it lets a fetch wait."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.controller.result import Result
from millbeck.kernel.errors import PositionOutOfRange, SnapshotNotFound
from millbeck.metadata.batches import read_batches
from millbeck.metadata.records import ConfigRecord
from millbeck.metadata.snapshot import read_snapshot
from millbeck.raft.messages import FetchRequest, FetchResponse, SnapshotKey, SnapshotRequest, SnapshotResponse
from millbeck.raft.voters import ReplicaKey

BROKER = ReplicaKey(9, b"9" * 16)


def _set(name: str) -> Any:
    record = ConfigRecord(resource_type=4, resource_name="", name=name, value="v")
    return lambda image: Result(response=None, records=[record])


def _fetch(driver: Any, offset: int, last_epoch: int, high_watermark: int = 100) -> FetchRequest:
    return FetchRequest(
        epoch=driver.epoch, replica=BROKER, offset=offset, last_epoch=last_epoch, high_watermark=high_watermark
    )


def test_an_observer_gets_the_log_batch_for_batch(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        reply = await driver.ask(_fetch(driver, 0, 0))
        assert isinstance(reply, FetchResponse)
        assert [batch.base_offset for batch in read_batches(reply.records)] == [0, 1]
        assert (reply.high_watermark, reply.leader.node_id) == (4, 1)

    asyncio.run(scenario())


def test_a_fetch_at_the_end_waits_for_the_next_batch(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        waiting = asyncio.ensure_future(driver.ask(_fetch(driver, 4, 1)))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        await driver.submit(_set("a"))
        reply = await waiting
        assert [batch.base_offset for batch in read_batches(reply.records)] == [4]

    asyncio.run(scenario())


def test_who_does_not_know_what_is_committed_is_told_at_once(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        reply = await driver.ask(_fetch(driver, 4, 1, high_watermark=3))
        assert (reply.records, reply.high_watermark) == (b"", 4)

    asyncio.run(scenario())


def test_a_snapshot_is_served_in_parts(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(_set("a"))
        snapshot_id = await driver.snapshots.write(driver.image)
        reply = await driver.ask(_fetch(driver, 0, 0))
        assert reply.snapshot == SnapshotKey(*snapshot_id)
        ask = SnapshotRequest(epoch=driver.epoch, replica=BROKER, snapshot=reply.snapshot, position=0)
        part = await driver.ask(ask)
        assert isinstance(part, SnapshotResponse)
        assert len(part.data) == part.size_bytes
        assert read_snapshot(part.data).records
        beyond = SnapshotRequest(epoch=driver.epoch, replica=BROKER, snapshot=reply.snapshot, position=1 << 20)
        assert (await driver.ask(beyond)).error_code == PositionOutOfRange.code
        other = SnapshotRequest(epoch=driver.epoch, replica=BROKER, snapshot=SnapshotKey(2, 1), position=0)
        assert (await driver.ask(other)).error_code == SnapshotNotFound.code

    asyncio.run(scenario())
