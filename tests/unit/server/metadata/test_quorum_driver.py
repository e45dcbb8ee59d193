"""The driver of the metadata log: what is on disk when, who sees what in which order, and what a crash leaves."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import (
    InvalidUpdateVersion,
    NotController,
    PolicyViolation,
    TopicAlreadyExists,
    UnknownServerError,
)
from millbeck.metadata.batches import data_batch, read_batches
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from millbeck.raft.roles import Role
from millbeck.records.control import LeaderChange, Voter, VoterEndpoint, VoterId, Voters
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.quorum_driver import MetadataLogFailed
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.producer_state import AppendOrigin

LOG = "00000000000000000000.log"


def _topic(name: str) -> TopicRecord:
    return TopicRecord(name=name, topic_id=name.encode().ljust(16, b"."))


def create(name: str) -> Callable[[MetadataImage], Result[str]]:
    """A decision that creates a topic, or refuses to create it twice."""

    def decide(image: MetadataImage) -> Result[str]:
        if image.topics.named(name) is not None:
            raise TopicAlreadyExists(name)
        return Result(response=f"created {name}", records=[_topic(name)])

    return decide


def names_of(image: MetadataImage) -> list[str]:
    return sorted(image.topics.by_name)


def test_a_new_log_begins_as_kafkas_does(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        assert driver.machine.role is Role.LEADER
        assert (driver.epoch, driver.high_watermark, driver.log.end_offset) == (1, 4, 4)
        assert driver.image.features.metadata_version == 30

    asyncio.run(scenario())
    voters = (VoterId(node_id=1),)
    first, second = read_batches(metadata_node.content(LOG))
    assert first.control_values == (LeaderChange(leader_id=1, voters=voters, granting_voters=voters),)
    assert second.records == (
        BeginTransactionRecord(name="Bootstrap records"),
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        EndTransactionRecord(),
    )
    assert (first.epoch, second.epoch, second.base_offset) == (1, 1, 1)
    assert json.loads(metadata_node.content("quorum-state")) == {
        "clusterId": "",
        "leaderId": 1,
        "leaderEpoch": 1,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": 1}],
        "data_version": 0,
    }


def test_the_vote_is_on_disk_before_anything_of_the_epoch(metadata_node: Any) -> None:
    async def scenario() -> None:
        metadata_node.disk.fail_next(DiskCall.SYNC, path_part="quorum-state")
        with pytest.raises(MetadataLogFailed):
            await metadata_node.started()

    asyncio.run(scenario())
    assert metadata_node.content(LOG) == b""
    assert len(metadata_node.fatal) == 1


def test_the_epoch_rises_at_every_start(metadata_node: Any) -> None:
    async def scenario() -> None:
        for epoch in (1, 2, 3):
            driver = await metadata_node.started()
            assert driver.epoch == epoch
            await driver.stop()

    asyncio.run(scenario())
    changes = [batch for batch in read_batches(metadata_node.content(LOG)) if batch.control_values]
    assert [batch.epoch for batch in changes] == [1, 2, 3]


def test_the_epoch_rises_over_the_logs_when_the_state_was_lost(metadata_node: Any) -> None:
    async def scenario() -> None:
        await (await metadata_node.started()).stop()
        await (await metadata_node.started()).stop()
        metadata_node.disk.mount().unlink(f"{metadata_node.directory}/quorum-state")
        assert (await metadata_node.started()).epoch == 3

    asyncio.run(scenario())


def test_a_response_comes_after_the_sync_and_after_publication(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        order: list[str] = []

        async def note(image: MetadataImage, delta: object) -> None:
            await asyncio.sleep(0)
            order.append(f"published {driver.log.flushed_offset}")

        driver.subscribe(note)
        waiting = asyncio.ensure_future(driver.submit(create("a")))
        await asyncio.sleep(0)
        assert driver.log.end_offset == 5
        assert (driver.high_watermark, names_of(driver.image)) == (4, [])
        order.append(await waiting)
        assert order == ["published 5", "created a"]
        assert names_of(driver.image) == ["a"]

    asyncio.run(scenario())


def test_decisions_see_what_was_appended_before_it_is_committed(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        results = await asyncio.gather(
            driver.submit(create("a")), driver.submit(create("a")), driver.submit(create("b")), return_exceptions=True
        )
        assert (results[0], results[2]) == ("created a", "created b")
        assert isinstance(results[1], TopicAlreadyExists)
        assert driver.log.end_offset == 6

    asyncio.run(scenario())


def test_appends_during_a_sync_share_the_next_one(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        jobs = 0
        flush_job = driver.log.flush_job

        async def burst() -> None:
            await asyncio.gather(*(driver.submit(create(f"t{index}")) for index in range(50)))

        class Counting:
            def __getattr__(self, name: str) -> Any:
                return getattr(log, name)

            def flush_job(self) -> Any:
                nonlocal jobs
                jobs += 1
                return flush_job()

        log = driver.log
        driver.log = Counting()
        await burst()
        assert jobs <= 2
        assert len(names_of(driver.image)) == 50

    asyncio.run(scenario())


def test_a_response_without_records_waits_for_what_it_saw(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        create_a = asyncio.ensure_future(driver.submit(create("a")))
        await asyncio.sleep(0)
        names = await driver.submit(lambda image: Result(response=names_of(image)))
        assert names == ["a"]
        assert driver.high_watermark == 5
        await create_a
        # With nothing under way the answer comes at once.
        assert await driver.submit(lambda image: Result(response=7)) == 7

    asyncio.run(scenario())


def test_a_refused_decision_changes_nothing(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()

        def contradicts(image: MetadataImage) -> Result[None]:
            return Result(response=None, records=[_topic("x"), RemoveTopicRecord(topic_id=b"?" * 16)])

        def too_large(image: MetadataImage) -> Result[None]:
            return Result(response=None, records=[ConfigRecord(name="x", value="y" * (9 << 20))])

        def raises(image: MetadataImage) -> Result[None]:
            raise ZeroDivisionError

        for decide, error in ((contradicts, UnknownServerError), (too_large, PolicyViolation)):
            with pytest.raises(error):
                await driver.submit(decide)
        with pytest.raises(ZeroDivisionError):
            await driver.submit(raises)
        assert driver.log.end_offset == 4
        assert await driver.submit(create("x")) == "created x"
        assert not metadata_node.fatal

    asyncio.run(scenario())


def test_many_records_that_need_not_be_atomic_are_several_batches(metadata_node: Any) -> None:
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=2, resource_name="a", name=f"n{index}", value="v") for index in range(1200)
    ]

    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(lambda image: Result(response=None, records=records, is_atomic=False))
        assert len(driver.image.configs.of_topic("a")) == 1200

    asyncio.run(scenario())
    sizes = [len(batch.records) for batch in read_batches(metadata_node.content(LOG)) if batch.base_offset >= 4]
    assert sizes == [500, 500, 200]


def in_steps(names: list[str], turns: list[int]) -> Callable[[MetadataImage], Steps[Result[int]]]:
    """A decision that creates topics, and gives way after each; notes how many turns others had had by then."""

    def decide(image: MetadataImage) -> Steps[Result[int]]:
        assert image.topics.named(names[0]) is None
        records: list[MetadataRecord] = []
        for name in names:
            records.append(_topic(name))
            turns.append(turns[0])
            yield
        return Result(response=len(records), records=records)

    return decide


async def count_turns(turns: list[int]) -> None:
    while True:
        turns[0] += 1
        await asyncio.sleep(0)


def test_a_decision_in_steps_gives_way_and_the_next_one_is_taken_on_what_it_makes(metadata_node: Any) -> None:
    names = [f"t{number}" for number in range(250)]

    async def scenario() -> None:
        driver = await metadata_node.started()
        metadata_node.clock.step_ms = 10
        turns = [0]
        ticking = asyncio.ensure_future(count_turns(turns))
        deciding = asyncio.ensure_future(driver.submit(in_steps(names, turns)))
        await asyncio.sleep(0)
        late = asyncio.ensure_future(driver.submit(create("t249")))
        with pytest.raises(TopicAlreadyExists):
            await late
        assert driver.log.end_offset == 4 + 250
        assert turns[-1] >= 249, "each step was in a turn of its own"
        # Records are replayed and encoded in steps as well.
        assert turns[0] >= 252
        assert await deciding == 250
        ticking.cancel()
        assert names_of(driver.image) == sorted(names)

    asyncio.run(scenario())
    last = list(read_batches(metadata_node.content(LOG)))[-1]
    assert len(last.records) == 250, "it takes effect as a whole"


def test_a_decision_is_given_up_when_this_node_no_longer_decides(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        metadata_node.clock.step_ms = 10
        stopping: list[asyncio.Future[None]] = []

        def decide(image: MetadataImage) -> Steps[Result[None]]:
            stopping.append(asyncio.ensure_future(driver.stop()))
            for _ in range(3):
                yield
            raise AssertionError("there is nobody to decide any more")

        with pytest.raises(NotController):
            await driver.submit(decide)
        await stopping[0]
        assert driver.log.end_offset == 4

    asyncio.run(scenario())


def test_records_that_need_not_be_atomic_do_not_depend_on_each_other(metadata_node: Any) -> None:
    """Neither on fitting one batch, nor on all of them being what the image takes."""
    records: list[MetadataRecord] = [
        ConfigRecord(resource_type=2, resource_name="a", name=f"n{index}", value="v" * (1 << 20)) for index in range(20)
    ]
    bad = RemoveTopicRecord(topic_id=b"?" * 16)

    async def scenario() -> None:
        driver = await metadata_node.started()
        await driver.submit(lambda image: Result(response=None, records=records, is_atomic=False))
        assert list(driver.image.configs.of_topic("a")) == [f"n{index}" for index in range(20)]
        for name in ("b", "c"):
            options: list[MetadataRecord] = [
                ConfigRecord(resource_type=2, resource_name=name, name=f"n{index}", value="v") for index in range(9)
            ]
            mixed = [*options[:4], bad, *options[4:]]
            with pytest.raises(UnknownServerError):
                await driver.submit(lambda image, mixed=mixed: Result(response=None, records=mixed, is_atomic=False))
            await driver.submit(lambda image: Result(response=None))
            assert list(driver.image.configs.of_topic(name)) == [f"n{index}" for index in range(9)]
        assert driver.statistics.fault_count == 2
        too_large = ConfigRecord(resource_type=2, resource_name="d", name="x", value="y" * (9 << 20))
        with pytest.raises(PolicyViolation):
            await driver.submit(lambda image: Result(response=None, records=[too_large, _topic("x")], is_atomic=False))
        await driver.submit(lambda image: Result(response=None))
        assert names_of(driver.image) == ["x"]

    asyncio.run(scenario())


def test_a_restart_brings_the_same_image_back(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for name in "abc":
            await driver.submit(create(name))
        await driver.submit(
            lambda image: Result(response=None, records=[RemoveTopicRecord(topic_id=_topic("b").topic_id)])
        )
        before = list(driver.image.records())
        metadata_node.kill()
        again = await metadata_node.started()
        assert list(again.image.records()) == before
        first, first_delta = metadata_node.published[0]
        assert first_delta.before is EMPTY
        assert sorted(first_delta.topics.created.values()) == ["a", "c"]
        assert names_of(first) == ["a", "c"]

    asyncio.run(scenario())


@pytest.mark.parametrize("seed", range(25))
def test_what_was_answered_survives_a_power_loss(metadata_node_for: Callable[[int], Any], seed: int) -> None:
    node = metadata_node_for(seed)

    async def scenario() -> None:
        answered: list[str] = []
        for life in range(4):
            driver = await node.started(after_bytes=400)
            assert set(answered) <= set(names_of(driver.image)), "an answered topic is gone"
            assert driver.epoch == life + 1
            for name in (f"t{life}-{index}" for index in range(6)):
                await driver.submit(create(name))
                answered.append(name)
            # One more that nobody was told of: it may be there or not.
            asyncio.ensure_future(driver.submit(create(f"u{life}"))).cancel()
            for _ in range(seed % 7):
                await asyncio.sleep(0)
            node.kill()
            node.disk.power_loss()
        assert set(answered) <= set(names_of((await node.started()).image))

    asyncio.run(scenario())


def test_a_failed_sync_is_fatal_and_never_retried(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        metadata_node.disk.fail_next(DiskCall.SYNC, path_part=LOG)
        with pytest.raises(MetadataLogFailed, match="a committed metadata record cannot be applied"):
            await driver.submit(create("a"))
        with pytest.raises(MetadataLogFailed):
            await driver.submit(create("b"))
        assert metadata_node.fatal == [driver.failure]
        assert names_of(driver.image) == []
        with pytest.raises(MetadataLogFailed):
            await driver.stop()

    asyncio.run(scenario())


def test_a_failed_write_is_fatal(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        metadata_node.disk.fail_next(DiskCall.WRITE, path_part=LOG, error=errno.ENOSPC)
        with pytest.raises(MetadataLogFailed, match="cannot be written"):
            await driver.submit(create("a"))
        assert len(metadata_node.fatal) == 1
        assert driver.log.end_offset == 4

    asyncio.run(scenario())


def test_a_subscriber_that_fails_is_fatal(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()

        async def fails(image: MetadataImage, delta: object) -> None:
            raise ValueError("can not apply this")

        driver.subscribe(fails)
        with pytest.raises(MetadataLogFailed, match="can not apply this"):
            await driver.submit(create("a"))
        assert len(metadata_node.fatal) == 1

    asyncio.run(scenario())


def test_an_open_transaction_is_aborted_by_the_next_controller(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        begin = BeginTransactionRecord()
        await driver.submit(lambda image: Result(response=None, records=[begin, _topic("a")]))
        metadata_node.kill()
        again = await metadata_node.started()
        assert names_of(again.image) == []
        assert again.image.open_transaction is None
        assert await again.submit(create("a")) == "created a"

    asyncio.run(scenario())
    written = [record for batch in read_batches(metadata_node.content(LOG)) for record in batch.records]
    assert AbortTransactionRecord(reason="A new controller has started.") in written


def test_after_stopping_there_is_no_controller(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = metadata_node.make()
        with pytest.raises(NotController):
            await driver.submit(create("a"))
        await driver.start()
        last = asyncio.ensure_future(driver.submit(create("a")))
        await asyncio.sleep(0)
        await driver.stop()
        assert await last == "created a"
        with pytest.raises(NotController):
            await driver.submit(create("b"))
        assert driver.log.flushed_offset == driver.log.end_offset

    asyncio.run(scenario())


class SlowThreads:
    def run(self, job: Callable[..., Any], *arguments: Any) -> Awaitable[Any]:
        async def later() -> Any:
            await asyncio.sleep(0.1)
            return job(*arguments)

        return later()


def test_a_stop_waits_for_the_flush_that_is_running(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        batch = data_batch([_topic("a")], base_offset=driver.log.end_offset, epoch=driver.epoch, timestamp_ms=1)
        driver._log_writer.environment = replace(driver.environment, threads=SlowThreads())
        driver._log_writer.write(batch, driver.epoch, 1)
        # A follower does not wait until its last records are committed.
        driver._active_epoch = -1
        await driver.stop()
        assert driver.log.flushed_offset == driver.log.end_offset
        assert not driver.log.durability.is_running
        assert metadata_node.logs.close()

    asyncio.run(scenario())


def test_other_voters_are_named_in_the_settings(metadata_node: Any) -> None:
    with pytest.raises(AssertionError, match="in the settings"):
        metadata_node.make(voters=(1, 2, 3))


def test_a_log_that_contradicts_itself_stops_the_start(metadata_node: Any) -> None:
    async def scenario(batch: bytes, message: str) -> None:
        driver = await metadata_node.started()
        driver.log.stage(batch, leader_epoch=1, now_ms=1, origin=AppendOrigin.QUORUM)
        driver.log.write_staged()
        driver.log.flush()
        metadata_node.kill()
        with pytest.raises(MetadataLogFailed, match=message):
            await metadata_node.started()

    removal = data_batch([RemoveTopicRecord(topic_id=b"?" * 16)], base_offset=0, epoch=1, timestamp_ms=1)
    asyncio.run(scenario(removal, "does not exist"))


def test_the_voters_in_the_log_count_more_than_those_of_the_file(metadata_node: Any) -> None:
    async def scenario() -> None:
        voter = Voter(node_id=1, directory_id=b"d" * 16, endpoints=(), kraft_version_max=1)
        metadata_node.make()
        metadata_files.write_initial_voters(
            metadata_node.files, metadata_node.directory, Voters(voters=(voter,)), now_ms=1
        )
        driver = await metadata_node.started(directory_id=b"d" * 16)
        assert driver.kraft_version == 1
        assert driver.machine.history.latest.voters == (voter,)
        await driver.submit(create("a"))
        await driver.snapshots.write(driver.image)
        metadata_node.kill()
        again = await metadata_node.started(directory_id=b"d" * 16)
        assert (again.epoch, again.kraft_version, names_of(again.image)) == (2, 1, ["a"])
        assert again.machine.history.latest.voters == (voter,)

    asyncio.run(scenario())
    (batch, *_) = read_batches(metadata_node.content("00000000000000000007.log"))
    (change,) = batch.control_values
    assert isinstance(change, LeaderChange)
    assert (change.version, change.voters[0].directory_id) == (1, b"d" * 16)
    assert json.loads(metadata_node.content("quorum-state"))["data_version"] == 1


def test_who_does_not_vote_and_knows_nobody_waits(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = metadata_node.make(voters=(), can_vote=False)
        await driver.start()
        waiting = asyncio.ensure_future(driver.wait_caught_up())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        assert (driver.machine.role, driver.is_active) == (Role.UNATTACHED, False)
        with pytest.raises(NotController):
            await driver.submit(create("a"))
        await driver.stop()
        with pytest.raises(NotController):
            await waiting

    asyncio.run(scenario())


def test_leadership_is_told_once_everything_is_committed(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = metadata_node.make()
        told: list[str] = []
        driver.on_leadership(
            gained=lambda epoch: told.append(f"gained {epoch} at {driver.image.offset}"),
            lost=lambda epoch: told.append(f"lost {epoch}"),
        )
        driver.on_leader_change(lambda leader: told.append(f"leader {leader.node_id} in {leader.epoch}"))
        await driver.start()
        assert told == ["leader 1 in 1", "gained 1 at 3"]
        driver.resign()
        await asyncio.sleep(0.01)
        assert told[2:] == ["lost 1", "leader -1 in 1"]
        with pytest.raises(NotController):
            await driver.submit(create("a"))

    asyncio.run(scenario())


def test_a_decision_that_is_not_committed_when_leadership_is_lost_is_answered_so(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        waiting = asyncio.ensure_future(driver.submit(create("a")))
        await asyncio.sleep(0)
        driver.resign()
        with pytest.raises(NotController):
            await waiting
        assert names_of(driver.commits.appended_image) == []
        assert driver.commits.appended_image is driver.image

    asyncio.run(scenario())


def test_a_decision_that_raises_the_quorums_own_level(metadata_node: Any) -> None:
    def raising(image: MetadataImage) -> Result[str]:
        return Result(response="raised", records=[_topic("a")], kraft_version=1)

    async def scenario() -> None:
        listener = VoterEndpoint(name="CONTROLLER", host="c1", port=9093)
        deaf = await metadata_node.started()
        with pytest.raises(InvalidUpdateVersion):
            await deaf.submit(raising)
        assert (deaf.kraft_version, names_of(deaf.image)) == (0, [])
        metadata_node.kill()
        driver = await metadata_node.started(directory_id=b"d" * 16, listeners=(listener,))
        assert await driver.submit(raising) == "raised"
        assert (driver.kraft_version, names_of(driver.image)) == (1, ["a"])
        (voter,) = driver.voters.voters
        assert (voter.directory_id, voter.endpoints) == (b"d" * 16, (listener,))
        assert await driver.submit(create("b")) == "created b"
        metadata_node.kill()
        again = await metadata_node.started(directory_id=b"d" * 16, listeners=(listener,))
        assert (again.kraft_version, names_of(again.image)) == (1, ["a", "b"])
        assert json.loads(metadata_node.content("quorum-state"))["data_version"] == 1

    asyncio.run(scenario())
