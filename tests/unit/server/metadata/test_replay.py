from __future__ import annotations

import asyncio
from typing import Any

from millbeck.controller.result import Result
from millbeck.metadata.image import EMPTY
from millbeck.metadata.records import ConfigRecord, MetadataRecord, TopicRecord
from millbeck.server.metadata.metadata_files import newest_snapshot
from millbeck.server.metadata.replay import MetadataReplay


def _set(name: str) -> Any:
    record = ConfigRecord(resource_type=4, resource_name="", name=name, value="v")
    return lambda image: Result(response=None, records=[record])


def test_the_log_makes_the_image_that_was_decided_upon(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for name in "abc":
            await driver.submit(_set(name))
        replay = MetadataReplay(driver.environment, driver.log)
        whole = await replay.to(7, image=EMPTY, position=0)
        assert (whole.image, whole.end_offset) == (driver.image, 7)
        assert whole.delta.before is EMPTY
        assert whole.size_bytes > 0
        part = await replay.to(5, image=EMPTY, position=0)
        assert sorted(part.image.configs.of_all_brokers()) == ["a"]
        rest, delta, size_bytes = replay.tail(part.image, 5)
        assert rest == driver.image
        assert delta.before is part.image
        assert 0 < size_bytes < whole.size_bytes

    asyncio.run(scenario())


def test_a_snapshot_begins_the_image_anew_and_the_delta_leads_there(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(_set("a"))
        before, _, _ = MetadataReplay(driver.environment, driver.log).tail(EMPTY, 0)
        await driver.submit(lambda image: Result(response=None, records=[TopicRecord(name="t", topic_id=b"t" * 16)]))
        await driver.snapshots.write(driver.image)
        await driver.submit(_set("b"))
        replay = MetadataReplay(driver.environment, driver.log)
        found = newest_snapshot(metadata_node.files, driver.log.directory)
        assert found is not None
        replay.begin_with(found)
        made = await replay.to(driver.log.end_offset, image=before, position=5)
        assert list(made.image.records()) == list(driver.image.records())
        assert list(made.delta.topics.created.values()) == ["t"]
        assert made.delta.before == before
        # Once: the next one goes on from there.
        again = await replay.to(driver.log.end_offset, image=made.image, position=made.end_offset)
        assert again.delta.topics.created == {}

    asyncio.run(scenario())


def test_a_large_batch_is_folded_in_turns(metadata_node: Any) -> None:
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=4, resource_name="", name=f"n{number}", value="v") for number in range(1000)
    ]

    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(lambda image: Result(response=None, records=records))
        metadata_node.clock.step_ms = 10
        turns = 0

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count())
        made = await MetadataReplay(driver.environment, driver.log).to(1004, image=EMPTY, position=0)
        counting.cancel()
        assert made.image == driver.image
        assert turns >= 8, "of the loop, one for each 128 records"

    asyncio.run(scenario())
