"""Publication: in order, only what is committed, and what becomes of those who wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.kernel.errors import NotController
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import ConfigRecord
from millbeck.server.metadata.commits import MetadataCommits


class QuorumHarness:
    def __init__(self, driver: Any) -> None:
        self.published: list[MetadataImage] = []
        self.failures: list[Exception] = []
        self.commits = MetadataCommits(
            driver.environment,
            driver.log,
            spawn=asyncio.ensure_future,
            on_published=lambda image, size: None,
            on_failed=self.failures.append,
        )

        async def publish(image: MetadataImage, delta: Any) -> None:
            await asyncio.sleep(0)
            self.published.append(image)

        self.commits.subscribe(publish)


def _set(name: str) -> Any:
    record = ConfigRecord(resource_type=4, resource_name="", name=name, value="v")
    return lambda image: Result(response=None, records=[record])


async def wait_for_tasks() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_images_are_folded_as_far_as_is_committed_and_waiters_are_answered_then(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for name in "ab":
            await driver.submit(_set(name))
        harness = QuorumHarness(driver)
        waiting = asyncio.ensure_future(harness.commits.wait(6))
        harness.commits.moved(1)
        await wait_for_tasks()
        assert (harness.published, harness.commits.position) == ([], 1), "nothing to tell before there is a version"
        harness.commits.moved(5)
        await wait_for_tasks()
        assert (harness.commits.position, waiting.done()) == (5, False)
        assert sorted(harness.published[-1].configs.of_all_brokers()) == ["a"]
        harness.commits.moved(6)
        await waiting
        assert harness.commits.image == driver.image
        assert not harness.failures

    asyncio.run(scenario())


def test_losing_the_lead_forgets_what_is_not_committed(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        harness = QuorumHarness(driver)
        commits = harness.commits
        commits.moved(4)
        await wait_for_tasks()
        commits.on_leadership_gained()
        committed = commits.appended_image
        await driver.submit(_set("a"))
        image, delta = advance(committed, [], offset=4, epoch=1, timestamp_ms=1)
        commits.appended(image, delta, 10)
        waiting = asyncio.ensure_future(commits.wait(5))
        await wait_for_tasks()
        commits.on_leadership_lost(NotController("lost"))
        with pytest.raises(NotController):
            await waiting
        assert commits.appended_image is commits.image
        assert commits.image.offset == 3
        commits.moved(5)
        await wait_for_tasks()
        assert sorted(commits.image.configs.of_all_brokers()) == ["a"], "the log says what became of it"

    asyncio.run(scenario())


def test_who_waits_for_what_is_committed_is_answered_in_spite_of_the_loss(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        harness = QuorumHarness(driver)
        waiting = asyncio.ensure_future(harness.commits.wait(4))
        await asyncio.sleep(0)
        harness.commits.moved(4)
        harness.commits.on_leadership_lost(NotController("lost"))
        await waiting
        assert harness.commits.position == 4

    asyncio.run(scenario())


def test_closing_answers_everybody_and_a_failing_subscriber_is_reported(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        harness = QuorumHarness(driver)

        async def fails(image: MetadataImage, delta: Any) -> None:
            raise ValueError("no")

        harness.commits.subscribe(fails)
        harness.commits.moved(4)
        await wait_for_tasks()
        assert [str(error) for error in harness.failures] == ["no"]
        assert harness.commits.image is not EMPTY
        waiting = asyncio.ensure_future(harness.commits.wait(9))
        await asyncio.sleep(0)
        harness.commits.close(NotController("over"))
        with pytest.raises(NotController):
            await waiting

    asyncio.run(scenario())
