"""What all workers promise, wherever they do their work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millbeck.kernel.environment import Environment, WorkCancelled

if TYPE_CHECKING:
    from tests.contract.conftest import Machine

JOBS = """
from millbeck.kernel.environment import OpenMode

def add(place, numbers):
    return sum(numbers)

def break_down(place, text):
    raise OSError(28, text)

def unspeakable(place, text):
    class Local(Exception):
        pass
    raise Local(text)

def write(place, path):
    file = place.files.open(path, OpenMode.WRITE)
    file.write([b"written"], 0)
    file.sync()
    file.close()

def count(place, limit):
    for number in range(limit):
        place.report(number)
    return place.monotonic() >= 0

def last_word(place, _):
    while place.word() != "enough":
        place.pause(0.001)
        place.report("waiting")
    return "heard"
"""


@pytest.fixture
def jobs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    directory: Path = tmp_path_factory.mktemp("jobs")
    (directory / "jobs_for_workers.py").write_text(JOBS)
    monkeypatch.syspath_prepend(str(directory))
    import jobs_for_workers  # type: ignore[import-not-found]

    yield jobs_for_workers
    del sys.modules["jobs_for_workers"]


def ignore(report: object) -> None:
    assert report is not None


def test_a_job_gets_its_argument_and_its_result_is_awaited(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        first = environment.workers.start(jobs.add, [1, 2, 3], ignore)
        second = environment.workers.start(jobs.add, [4], ignore)
        return await second.result, await first.result

    assert machine.run(scenario) == (4, 6)


def test_a_jobs_exception_is_raised_where_it_is_awaited(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        with pytest.raises(OSError, match="no room") as caught:
            await environment.workers.start(jobs.break_down, "no room", ignore).result
        with pytest.raises(Exception, match="not to be told"):
            await environment.workers.start(jobs.unspeakable, "not to be told", ignore).result
        return caught.value.errno, await environment.workers.start(jobs.add, [7], ignore).result

    assert machine.run(scenario) == (28, 7)


def test_what_a_job_writes_is_there(machine: Machine, jobs: Any) -> None:
    path = f"{machine.directory}/work"

    async def scenario(environment: Environment) -> None:
        await environment.workers.start(jobs.write, path, ignore).result

    machine.run(scenario)
    assert machine.files.size(path) == len("written")


def test_reports_come_in_order_before_the_result(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        reports: list[object] = []
        is_timed = await environment.workers.start(jobs.count, 50, reports.append).result
        return reports, is_timed

    assert machine.run(scenario) == (list(range(50)), True)


def test_a_job_that_is_stopped_before_it_began_never_ends_well(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        handle = environment.workers.start(jobs.count, 10, ignore)
        handle.stop()
        with pytest.raises(WorkCancelled):
            await handle.result
        return await environment.workers.start(jobs.add, [1], ignore).result

    assert machine.run(scenario) == 1


def test_whoever_gives_up_waiting_stops_the_job(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        handle = environment.workers.start(jobs.add, [1], ignore)
        handle.result.cancel()
        await asyncio.sleep(0)
        environment.workers.close()
        return await environment.workers.start(jobs.add, [2], ignore).result

    assert machine.run(scenario) == 2


def test_a_word_that_was_said_before_the_job_began_is_heard(machine: Machine, jobs: Any) -> None:
    async def scenario(environment: Environment) -> object:
        handle = environment.workers.start(jobs.last_word, None, ignore)
        handle.tell("not yet")
        handle.tell("enough")
        return await handle.result

    assert machine.run(scenario) == "heard"
