"""The cleaner in a whole node: what is compacted when, what ends a run, and what is durable in which order."""

from __future__ import annotations

import asyncio
import errno
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, Files, OpenMode, WorkerDied
from millbeck.kernel.errors import InvalidRecord
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.server.cleaner.service import DEATHS_MAX, Cleaner
from millbeck.server.replicas.directory_moves import DirectoryMove, DirectoryMoves
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.compaction import plan as planning
from millbeck.storage.compaction.compactor import compact
from millbeck.storage.compaction.job import (
    CompactionCancelled,
    CompactionProgress,
    CompactionResult,
    SourceRemoved,
    UncleanableLog,
)
from millbeck.storage.segment import CorruptSegment
from millbeck.storage.swap import Swap, SwapState
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import (
    create,
    delete,
    fetch,
    partition_of,
    produce,
    results,
    run_scenario,
)

SMALL: dict[str, Any] = {"internal_segment_bytes": "400", "cleanup_policy": "compact"}
OFTEN = {"log_cleaner_backoff_ms": "100"}
NAME = TopicPartition("t", 0)
TOPIC, BROKER = 2, 4


def cleaner_of(harness: BrokerHarness) -> Cleaner:
    assert harness.node is not None
    return harness.node.broker.cleaner


async def fill(
    client: Client, *, count: int = 40, topic: str = "t", keys: int = 3, start: int = 0
) -> dict[bytes, bytes]:
    """Write records of a few keys, and what they come to: a table."""
    table = {}
    for number in range(start, start + count):
        key, value = b"k%d" % (number % keys), b"v%d" % number
        await produce(client, value, topic=topic, key=key)
        table[key] = value
    return table


async def read(client: Client, topic: str = "t") -> list[tuple[int, bytes, bytes | None]]:
    """Every record there is: offset, key, value."""
    found: list[tuple[int, bytes, bytes | None]] = []
    offset = 0
    while True:
        answer = results(await client.ask(fetch((0, offset), topic=topic), 11))[0]
        assert answer.error_code == 0, answer
        batches = list(batch.split(answer.records or b"", partial_tail=True))
        if not batches:
            return found
        for one in batches:
            found += [(record.offset, record.key or b"", record.value) for record in batch.records_of(one.data)]
        offset = batches[-1].header.next_offset


def table_of(records: list[tuple[int, bytes, bytes | None]]) -> dict[bytes, bytes]:
    table = {key: value for _, key, value in records}
    return {key: value for key, value in table.items() if value is not None}


async def until(condition: Any, seconds: float = 60) -> None:
    for _ in range(int(seconds * 20)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not come to pass")


async def alter(client: Client, resource: int, name: str, **settings: Any) -> int:
    configs = [IncrementalAlterableConfig(key.replace("_", "."), 0, value) for key, value in settings.items()]
    request = IncrementalAlterConfigsRequest(resources=[IncrementalAlterConfigsResource(resource, name, configs)])
    (answer,) = (await client.ask(request, 1)).responses
    code: int = answer.error_code
    return code


def checkpoint_of(harness: BrokerHarness) -> str:
    assert harness.node is not None
    files = harness.node.environment.files
    if not files.exists("/data/cleaner-offset-checkpoint"):
        return ""
    return files.open("/data/cleaner-offset-checkpoint", OpenMode.READ).read(10_000, 0).decode()


def test_a_compacted_log_keeps_the_latest_of_each_key_at_its_offset() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        table = await fill(client)
        before = await read(client)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        after = await read(client)
        assert len(after) < len(before) == 40
        assert set(after) <= set(before)
        assert table_of(after) == table
        log = partition_of(harness).log
        (line,) = [line for line in checkpoint_of(harness).splitlines() if line.startswith("t ")]
        assert line == f"t 0 {log.active.base_offset}"
        await asyncio.sleep(1)
        assert cleaner_of(harness).statistics.run_count == 1

    run_scenario(scenario, **OFTEN)


# What is chosen.


def test_a_log_is_left_alone_until_it_is_dirty_enough() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL, min_cleanable_dirty_ratio="1.0")
        await fill(client)
        await asyncio.sleep(2)
        assert cleaner_of(harness).statistics.run_count == 0
        assert cleaner_of(harness).statistics.dirtiest_ratio == 1.0
        assert await alter(client, TOPIC, "t", min_cleanable_dirty_ratio="0.9") == 0
        await until(lambda: cleaner_of(harness).statistics.run_count)

    run_scenario(scenario, **OFTEN)


def test_the_dirtiest_comes_first_and_each_has_its_turn() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        workers = hold_workers(harness)
        for topic in ("a", "b", "c"):
            await create(client, topic, **SMALL, min_cleanable_dirty_ratio="0.1")
        for topic, clean in (("a", 20), ("b", 5), ("c", 10)):
            await fill(client, topic=topic)
            checkpoint = cleaner_of(harness)._checkpoint_of(TopicPartition(topic, 0))
            assert checkpoint is not None
            checkpoint.note(TopicPartition(topic, 0), clean)
        await asyncio.sleep(1)  # sealed segments are being flushed
        assert await alter(client, BROKER, "", log_cleaner_backoff_ms="100") == 0
        await until(lambda: workers.handles)
        (first,) = workers.handles
        await asyncio.sleep(1)
        assert len(workers.handles) == 1
        first.finish()
        await until(lambda: len(workers.handles) == 2)
        workers.handles[1].finish()
        await until(lambda: len(workers.handles) == 3)
        workers.handles[2].finish()
        names = [handle.argument.job.topic_partition.topic for handle in workers.handles]
        assert names == ["b", "c", "a"]

    run_scenario(scenario, log_cleaner_backoff_ms="1000000")


def test_what_is_young_stays_and_what_is_old_is_due() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        now_ms = environment.clock.wall_ms()
        await create(client, "young", **SMALL, min_compaction_lag_ms="60000")
        await create(client, "due", **SMALL, min_cleanable_dirty_ratio="1.0", max_compaction_lag_ms="30000")
        for number in range(30):
            for topic in ("young", "due"):
                await produce(client, b"v%d" % number, topic=topic, key=b"k", timestamp=now_ms)
        await asyncio.sleep(10)
        assert cleaner_of(harness).statistics.run_count == 0
        await until(lambda: cleaner_of(harness).statistics.run_count == 1)
        assert len(await read(client, "due")) < 30 == len(await read(client, "young"))
        assert cleaner_of(harness).statistics.compaction_delay_seconds_max() > 0
        await until(lambda: cleaner_of(harness).statistics.run_count == 2, 90)
        assert len(await read(client, "young")) < 30

    run_scenario(scenario, **OFTEN)


def test_without_the_cleaner_nothing_is_compacted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        await fill(client)
        await asyncio.sleep(5)
        assert len(await read(client)) == 40
        assert cleaner_of(harness).dead_thread_count == 0

    run_scenario(scenario, **OFTEN, log_cleaner_enable="false")


def test_a_thread_that_fails_every_round_counts_as_dead_until_it_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        cleaner = cleaner_of(harness)
        with monkeypatch.context() as patch:
            patch.setattr(cleaner, "_choose", broken)
            await until(lambda: cleaner.dead_thread_count == 1)
        await until(lambda: cleaner.dead_thread_count == 0)
        assert harness.node is not None
        assert harness.node.broker.unexpected_errors > 0
        harness.node.broker.unexpected_errors = 0

    async def broken() -> None:
        raise ZeroDivisionError("oh")

    run_scenario(scenario, **OFTEN)


def test_a_log_that_was_truncated_since_it_was_chosen_is_surveyed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        cleaner = cleaner_of(harness)
        choose = cleaner._choose
        chosen: list[Any] = []

        async def choose_late() -> Any:
            found = await choose()
            if found is not None and not chosen:
                chosen.append(found)
                partition_of(harness).log.cut_to(1)
            return found

        monkeypatch.setattr(cleaner, "_choose", choose_late)
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: chosen)
        await asyncio.sleep(1)
        assert (cleaner.uncleanable, cleaner.statistics.run_count) == ({}, 0)

    run_scenario(scenario, **OFTEN)


def test_both_policies_hold_together() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="400", cleanup_policy="compact,delete", retention_ms="20000")
        now_ms = environment.clock.wall_ms()
        for number in range(40):
            await produce(client, b"v%d" % number, key=b"k%d" % (number % 3), timestamp=now_ms)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        assert 3 <= len(await read(client)) < 40
        await until(lambda: partition_of(harness).log.log_start_offset == 40)
        await fill(client, start=40)
        await until(lambda: cleaner_of(harness).statistics.run_count == 2)

    run_scenario(scenario, **OFTEN, log_retention_check_interval_ms="1000")


def test_the_default_policy_of_the_broker_counts() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="400")
        await fill(client)
        await until(lambda: cleaner_of(harness).statistics.run_count)

    run_scenario(scenario, **OFTEN, log_cleanup_policy="compact")


# Policies that change, records without keys.


async def produce_raw(client: Client, data: bytes) -> Any:
    data_of = PartitionProduceData(0, data)
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[data_of])])
    (answer,) = (await client.ask(request, 9)).responses[0].partition_responses
    return answer


def keyless() -> bytes:
    now_ms = 1_700_000_000_000
    return batch.build([Record(-1, now_ms, key, b"v") for key in (b"k", None, b"k")])


def test_records_without_a_key_are_refused_by_name_and_the_policy_may_change() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="400")
        for _ in range(10):
            assert (await produce_raw(client, keyless())).error_code == 0
        assert await alter(client, TOPIC, "t", cleanup_policy="compact") == 0
        answer = await produce_raw(client, keyless())
        assert answer.error_code == InvalidRecord.code
        assert [refused.batch_index for refused in answer.record_errors] == [1]
        table = await fill(client)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        after = await read(client)
        assert b"" not in {key for offset, key, _ in after if offset < partition_of(harness).log.active.base_offset}
        assert table_of(after).items() >= table.items()
        assert await alter(client, TOPIC, "t", cleanup_policy="delete") == 0
        assert (await produce_raw(client, keyless())).error_code == 0

    run_scenario(scenario, **OFTEN)


# Runs that do not come to their end.


class HeldJob:
    def __init__(self, files: Files, argument: Any, on_report: Any) -> None:
        self.files = files
        self.argument = argument
        self.on_report = on_report
        self.result: asyncio.Future[CompactionResult] = asyncio.get_running_loop().create_future()
        self.words: list[object] = []
        self.is_stopped = False

    def tell(self, word: object) -> None:
        self.words.append(word)

    def stop(self) -> None:
        self.is_stopped = True
        if not self.result.done():
            self.result.set_exception(CompactionCancelled())

    def finish(self) -> None:
        self.result.set_result(compact(self.argument.job, self.files))

    def fail(self, error: Exception) -> None:
        self.result.set_exception(error)


class HeldWorkers:
    """Take work and do none of it until they are told to."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.handles: list[HeldJob] = []

    def start(self, job: Any, argument: Any, on_report: Any) -> HeldJob:
        self.handles.append(HeldJob(self.files, argument, on_report))
        return self.handles[-1]

    def close(self) -> None:
        pass


def hold_workers(harness: BrokerHarness) -> HeldWorkers:
    assert harness.node is not None
    workers = HeldWorkers(harness.node.environment.files)
    held: Any = workers
    harness.node.broker.environment = replace(harness.node.broker.environment, workers=held)
    return workers


async def held_run(harness: BrokerHarness, client: Client) -> HeldJob:
    workers = hold_workers(harness)
    await create(client, **SMALL)
    await fill(client)
    await until(lambda: workers.handles)
    return workers.handles[0]


def test_a_deleted_topic_ends_its_run_and_another_of_its_name_begins_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        checkpoint.note(NAME, 10)
        await delete(client)
        assert handle.is_stopped
        assert checkpoint.offset_of(NAME) is None
        await until(lambda: not cleaner_of(harness).running)
        assert cleaner_of(harness).uncleanable == {}
        await create(client, **SMALL)
        assert checkpoint.offset_of(NAME) is None

    run_scenario(scenario, **OFTEN)


@pytest.mark.parametrize("policy", ["delete", ""])
def test_a_log_that_is_no_longer_compacted_ends_its_run(policy: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        assert await alter(client, TOPIC, "t", retention_ms="5") == 0
        assert not handle.is_stopped
        assert await alter(client, TOPIC, "t", cleanup_policy=policy) == 0
        assert handle.is_stopped
        await until(lambda: not cleaner_of(harness).running)
        assert (await produce_raw(client, keyless())).error_code == 0

    run_scenario(scenario, **OFTEN)


def test_a_directory_that_fails_ends_the_runs_in_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        assert harness.node is not None
        directory = harness.node.broker.logs.directory_of(NAME)
        assert directory is not None
        directory.failed("a test")
        assert handle.is_stopped
        await until(lambda: not cleaner_of(harness).running)
        assert cleaner_of(harness).uncleanable == {}

    run_scenario(scenario, **OFTEN, log_dirs="/data,/other")


def test_a_node_that_stops_ends_its_runs_and_closes_cleanly() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        node = harness.node
        assert node is not None
        stopping = asyncio.ensure_future(node.stop())
        await stopping
        assert handle.is_stopped
        assert cleaner_of(harness).running == {}
        assert node.environment.files.exists("/data/.kafka_cleanshutdown")

    run_scenario(scenario, **OFTEN)


def test_a_truncated_log_ends_its_run_and_is_dirty_from_there() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        checkpoint.note(NAME, 30)
        await cleaner_of(harness).partition_truncated(NAME, 12)
        assert handle.is_stopped
        assert checkpoint.offset_of(NAME) == 12
        assert checkpoint_of(harness).endswith("t 0 12\n")

    run_scenario(scenario, **OFTEN)


def test_a_log_that_changed_under_the_run_is_compacted_later() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        handle.fail(SourceRemoved("gone"))
        await until(lambda: len(hold_of(harness).handles) == 2)
        assert cleaner_of(harness).uncleanable == {}

    run_scenario(scenario, **OFTEN)


def hold_of(harness: BrokerHarness) -> HeldWorkers:
    assert harness.node is not None
    workers: Any = harness.node.broker.environment.workers
    assert isinstance(workers, HeldWorkers)
    return workers


LASTING = {
    "damage": UncleanableLog("/data/t-0/00000000000000000000.log", 61, "a checksum that does not match"),
    "a disk that does not read": OSError(errno.EIO, "broken"),
}


@pytest.mark.parametrize("error", LASTING.values(), ids=LASTING.keys())
def test_what_cannot_be_compacted_is_left_alone_until_the_next_start(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        handle.fail(error)
        await until(lambda: NAME in cleaner_of(harness).uncleanable)
        assert "t-0 cannot be compacted" in caplog.text
        await asyncio.sleep(2)
        assert len(hold_of(harness).handles) == 1
        assert harness.node is not None
        metrics = harness.node.render_metrics()
        assert 'kafka_log_logcleanermanager_uncleanable_partitions_count{logdirectory="/data"} 1' in metrics
        assert 'kafka_log_logcleanermanager_uncleanable_bytes{logdirectory="/data"} 0' not in metrics
        assert cleaner_of(harness).uncleanable_bytes(NAME) > 0
        # It is still a topic that one can write to and read.
        await fill(client)
        harness.machine.crash()
        await harness.start()
        client = await harness.connect(environment)
        # What recovery has read is durable, for all it knows, with the first checkpoint after it.
        await until(lambda: cleaner_of(harness).statistics.run_count, 90)
        assert cleaner_of(harness).uncleanable == {}
        assert len(await read(client)) < 80

    run_scenario(scenario, **OFTEN)


def test_something_unexpected_is_reported_and_left_alone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        handle.fail(ZeroDivisionError("oh"))
        await until(lambda: NAME in cleaner_of(harness).uncleanable)
        assert harness.node is not None
        assert harness.node.broker.unexpected_errors == 1
        harness.node.broker.unexpected_errors = 0
        assert cleaner_of(harness).dead_thread_count == 0

    run_scenario(scenario, **OFTEN)


def test_a_defect_in_one_log_leaves_the_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        before = planning.survey

        def defective(log: Any, **details: Any) -> Any:
            if log.topic_partition.topic == "a":
                raise ZeroDivisionError("oh")
            return before(log, **details)

        monkeypatch.setattr(planning, "survey", defective)
        for topic in ("a", "b"):
            await create(client, topic, **SMALL)
            await fill(client, topic=topic)
        cleaner = cleaner_of(harness)
        await until(lambda: TopicPartition("b", 0) in cleaner.dirty_ratios)
        await until(lambda: cleaner.dirty_ratios[TopicPartition("b", 0)] == 0)
        assert cleaner.uncleanable == {TopicPartition("a", 0): "ZeroDivisionError('oh')"}
        assert harness.node is not None
        assert harness.node.broker.unexpected_errors == 1
        harness.node.broker.unexpected_errors = 0

    run_scenario(scenario, **OFTEN)


def test_a_full_disk_is_tried_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        handle.fail(OSError(errno.ENOSPC, "full"))
        await until(lambda: len(hold_of(harness).handles) == 2)
        hold_of(harness).handles[1].finish()
        await until(lambda: cleaner_of(harness).statistics.run_count)

    run_scenario(scenario, **OFTEN)


def test_a_log_without_room_leaves_the_others_their_turn_and_rests_longer_each_time() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        workers = hold_workers(harness)
        await create(client, "u", **SMALL)
        await create(client, **SMALL, min_cleanable_dirty_ratio="0.9")
        await fill(client, topic="t")
        await until(lambda: workers.handles)
        workers.handles[0].fail(OSError(errno.ENOSPC, "full"))
        await fill(client, topic="u")
        await until(lambda: len(workers.handles) > 1)
        began = []
        for _ in range(4):
            count = len(workers.handles)
            for handle in workers.handles:
                if not handle.result.done():
                    if handle.argument.job.topic_partition == NAME:
                        began.append(environment.clock.monotonic())
                        handle.fail(OSError(errno.ENOSPC, "full"))
                    else:
                        handle.finish()
            await until(lambda count=count: len(workers.handles) > count)
        assert {handle.argument.job.topic_partition.topic for handle in workers.handles} == {"t", "u"}
        waits = [later - earlier for earlier, later in pairwise(began)]
        assert waits == sorted(waits)
        assert waits[-1] > 0.3
        assert cleaner_of(harness).uncleanable == {}

    run_scenario(scenario, **OFTEN)


def test_no_rate_at_all_is_the_smallest_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        workers = hold_workers(harness)
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: workers.handles)
        assert workers.handles[0].argument.bytes_per_second == 1.0

    run_scenario(scenario, **OFTEN, log_cleaner_io_max_bytes_per_second="0")


def test_a_worker_that_died_is_replaced_a_few_times() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await held_run(harness, client)
        for number in range(DEATHS_MAX):
            await until(lambda number=number: len(hold_of(harness).handles) == number + 1)
            assert NAME not in cleaner_of(harness).uncleanable
            hold_of(harness).handles[number].fail(WorkerDied("killed"))
        await until(lambda: NAME in cleaner_of(harness).uncleanable)

    run_scenario(scenario, **OFTEN)


# Threads, rates, and how it goes.


def test_as_many_at_a_time_as_there_are_threads_and_they_share_memory_and_rate() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        workers = hold_workers(harness)
        for topic in ("a", "b", "c"):
            await create(client, topic, **SMALL)
        for topic in ("a", "b", "c"):
            await fill(client, topic=topic)
        await asyncio.sleep(1)  # sealed segments are being flushed
        assert await alter(client, BROKER, "", log_cleaner_backoff_ms="100") == 0
        await until(lambda: len(workers.handles) == 1)
        first = workers.handles[0]
        assert first.argument.bytes_per_second == 1000.0
        assert first.argument.job.map_bytes_max == int(8_000_000 * 0.5)
        assert first.argument.job.read_bytes == 60_000
        assert await alter(client, BROKER, "", log_cleaner_threads="2") == 0
        await until(lambda: len(workers.handles) == 2)
        second = workers.handles[1]
        assert first.words[-1] == 500.0
        assert second.argument.bytes_per_second == 500.0
        assert second.argument.job.map_bytes_max == int(4_000_000 * 0.5)
        assert second.argument.job.read_bytes == 30_000
        assert await alter(client, BROKER, "", log_cleaner_io_max_bytes_per_second="300") == 0
        assert (first.words[-1], second.words[-1]) == (150.0, 150.0)
        first.finish()
        await until(lambda: len(workers.handles) == 3)
        assert await alter(client, BROKER, "", log_cleaner_threads="1") == 0
        workers.handles[2].finish()
        await until(lambda: len(cleaner_of(harness).running) == 1)
        assert second.words[-1] == 300.0
        second.finish()
        await until(lambda: not cleaner_of(harness).running)
        assert cleaner_of(harness).dead_thread_count == 0
        assert len(cleaner_of(harness)._threads) == 1

    run_scenario(
        scenario,
        log_cleaner_backoff_ms="1000000",
        log_cleaner_io_max_bytes_per_second="1000",
        log_cleaner_dedupe_buffer_size="8000000",
        log_cleaner_io_buffer_load_factor="0.5",
        log_cleaner_io_buffer_size="60000",
    )


def test_a_slow_run_takes_the_time_its_rate_asks_for() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: cleaner_of(harness).running)
        began = environment.clock.monotonic()
        await until(lambda: cleaner_of(harness).statistics.run_count)
        assert environment.clock.monotonic() - began > 4

    run_scenario(scenario, **OFTEN, log_cleaner_io_max_bytes_per_second="1000")


def test_metrics_tell_of_a_run_and_of_the_last_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        handle.on_report(CompactionProgress(bytes_done=25, bytes_total=100))
        assert harness.node is not None
        metrics = harness.node.render_metrics()
        assert 'millbeck_log_cleaner_progress_ratio{topic="t",partition="0"} 0.25' in metrics
        assert 'millbeck_log_cleaner_dirty_ratio{topic="t",partition="0"} 1' in metrics
        assert "kafka_log_logcleanermanager_max_dirty_percent 100" in metrics
        handle.finish()
        await until(lambda: cleaner_of(harness).statistics.run_count)
        metrics = harness.node.render_metrics()
        assert "millbeck_log_cleaner_progress_ratio{" not in metrics
        assert 'millbeck_log_cleaner_dirty_ratio{topic="t",partition="0"} 0' in metrics
        assert "millbeck_log_cleaner_runs_total 1" in metrics
        assert "kafka_log_logcleaner_deadthreadcount 0" in metrics
        assert cleaner_of(harness).statistics.recopy_percent() < 50

    run_scenario(scenario, **OFTEN)


# What is remembered.


def test_a_restart_knows_what_is_clean() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        before = await read(client)
        harness.machine.power_loss(0.0)
        await harness.start()
        client = await harness.connect(environment)
        assert await read(client) == before
        await asyncio.sleep(3)
        assert cleaner_of(harness).statistics.run_count == 0
        table = await fill(client, start=40)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        assert table_of(await read(client)) == table

    run_scenario(scenario, **OFTEN)


def test_a_checkpoint_that_cannot_be_written_is_written_later() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        harness.machine.disk.fail_next(DiskCall.SYNC, path_part="cleaner-offset")
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: cleaner_of(harness).statistics.run_count)
        assert checkpoint_of(harness) == ""
        await cleaner_of(harness)._save_checkpoints()
        assert "t 0 " in checkpoint_of(harness)

    run_scenario(scenario, **OFTEN)


def test_a_checkpoint_beyond_the_log_is_not_believed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        checkpoint.note(NAME, 30)
        await fill(client, count=5)
        for count in (0, 35):  # also when the log has grown beyond it
            await fill(client, count=count)
            surveyed = cleaner_of(harness).survey(partition_of(harness))
            assert surveyed is not None
            assert surveyed.first_dirty_offset == 0
            assert surveyed.was_reset == (count == 0)

    run_scenario(scenario, log_cleaner_backoff_ms="1000000")


def test_a_log_that_is_cut_tells_the_cleaner() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        handle = await held_run(harness, client)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        checkpoint.note(NAME, 30)
        assert harness.node is not None
        await harness.node.broker.logs.truncate(partition_of(harness), 12)
        assert handle.is_stopped
        assert checkpoint.offset_of(NAME) == 12
        assert partition_of(harness).log.end_offset == 12

    run_scenario(scenario, **OFTEN)


def test_a_cut_in_the_middle_of_a_swap_waits_for_threads() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        await fill(client)
        log = partition_of(harness).log
        await asyncio.sleep(1)
        cleaner_of(harness).apply_config()
        for _ in range(20_000):
            if isinstance(log.swap, Swap) and log.swap.state is SwapState.INSTALLED:
                break
            await asyncio.sleep(0.00005)
        assert log.swap is not None
        assert harness.node is not None
        await harness.node.broker.logs.truncate(partition_of(harness), 12)
        assert log.swap is None
        assert log.end_offset <= 12
        assert not log.is_offline
        # What was noted as clean is not, since other records may take its place.
        await until(lambda: not cleaner_of(harness).running)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        assert (checkpoint.offset_of(NAME) or 0) <= 12

    run_scenario(scenario, log_cleaner_backoff_ms="1000000")


def test_a_run_that_ends_while_its_log_is_cut_says_nothing_of_what_is_clean() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        cleaner = cleaner_of(harness)
        handle = await held_run(harness, client)
        # Its result was on its way when the cut was announced; the cut itself comes later.
        handle.finish()
        await cleaner.partition_truncated(NAME, 12)
        await until(lambda: cleaner.statistics.run_count)
        checkpoint = cleaner._checkpoint_of(NAME)
        assert checkpoint is not None
        assert checkpoint.offset_of(NAME) is None

    run_scenario(scenario, **OFTEN)


def test_a_topic_made_anew_does_not_inherit_a_checkpoint_that_was_never_read() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, **SMALL)
        await fill(client)
        await until(lambda: "t 0 " in checkpoint_of(harness))
        # A start whose cleaner has not looked at anything yet.
        cleaner_of(harness)._checkpoints.clear()
        await delete(client)
        await create(client, **SMALL)
        await until(lambda: "t 0 " not in checkpoint_of(harness), 5)

    run_scenario(scenario, **OFTEN)


def test_a_log_is_not_compacted_while_it_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the copy could have an old record and lack the tombstone that came after it."""
    may_go_on = asyncio.Event()
    copy = DirectoryMoves._step

    async def wait_and_copy(self: DirectoryMoves, move: DirectoryMove) -> bool:
        await may_go_on.wait()
        return await copy(self, move)

    monkeypatch.setattr(DirectoryMoves, "_step", wait_and_copy)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        cleaner = cleaner_of(harness)
        handle = await held_run(harness, client)
        assert harness.node is not None
        broker = harness.node.broker
        before = broker.logs.directory_of(NAME)
        assert before is not None
        known = cleaner._checkpoint_in(before)
        known.note(NAME, 3)
        partition = partition_of(harness)
        broker.replication.moves.begin(partition, "/other" if before.path == "/data" else "/data")
        await asyncio.sleep(1)
        assert (len(hold_of(harness).handles), cleaner.running) == (1, {})
        assert not cleaner._may_clean(partition)
        may_go_on.set()
        await until(lambda: broker.replication.moves.of(partition) is None, 5)
        assert handle.is_stopped
        # Where it is now, as much of it is clean.
        after = broker.logs.directory_of(NAME)
        assert after is not None
        assert after is not before
        assert (known.offset_of(NAME), cleaner._checkpoint_in(after).offset_of(NAME)) == (None, 3)
        await until(lambda: len(hold_of(harness).handles) == 2)
        assert hold_of(harness).handles[1].argument.job.directory.startswith(after.path)

    run_scenario(scenario, **OFTEN, log_dirs="/data,/other")


def test_a_replica_that_is_mended_is_dirty_from_where_it_was_cut() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await held_run(harness, client)
        checkpoint = cleaner_of(harness)._checkpoint_of(NAME)
        assert checkpoint is not None
        checkpoint.note(NAME, 30)
        partition = partition_of(harness)
        partition.log.mark_corrupt(CorruptSegment(partition.log.segments[1].log_path, 0, "a test"))
        assert harness.node is not None
        await harness.node.broker.logs.repair_log(partition)
        assert checkpoint.offset_of(NAME) == partition.log.segments[1].base_offset

    run_scenario(scenario, **OFTEN)


def test_a_node_starts_without_what_compaction_takes() -> None:
    program = (
        "import sys, millbeck.server.node; "
        "print([name for name in sys.modules if 'storage.compaction' in name or name.endswith('storage.swap')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
