from __future__ import annotations

import asyncio
from typing import Any

from millbeck.controller.result import Result
from millbeck.metadata.records import ConfigRecord
from millbeck.raft.messages import EpochEnd, SnapshotKey


def test_the_view_follows_the_log_and_its_snapshot(metadata_node: Any) -> None:
    async def scenario() -> None:
        first = await metadata_node.started()
        view = first.machine.log
        assert (view.start_offset, view.start_epoch, view.end_offset, view.snapshot) == (0, 0, 4, None)
        await first.stop()
        driver = await metadata_node.started()
        view = driver.machine.log
        assert (view.end_offset, view.flushed_offset, view.last_epoch) == (5, 5, 2)
        assert view.end_of_epoch(0) == EpochEnd(0, 0)
        assert view.end_of_epoch(1) == EpochEnd(1, 4)
        assert view.end_of_epoch(2) == view.end_of_epoch(9) == EpochEnd(2, 5)
        await driver.snapshots.write(driver.image)
        assert (view.start_offset, view.start_epoch, view.snapshot) == (5, 2, SnapshotKey(5, 2))
        assert view.end_of_epoch(1) == EpochEnd(2, 5)
        assert view.last_epoch == 2
        await driver.submit(lambda image: Result(response=None, records=[ConfigRecord(name="x", value="y")]))
        assert view.end_of_epoch(2) == EpochEnd(2, 6)
        await driver.stop()
        again = await metadata_node.started()
        assert (again.machine.log.start_epoch, again.machine.epoch) == (2, 3)

    asyncio.run(scenario())
