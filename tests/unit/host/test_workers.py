"""What is particular to workers that are processes: they start late, step back, die, and leave no orphan."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.host.files import HostFiles
from millbeck.host.workers import HostWorkers
from millbeck.kernel.environment import WorkCancelled, WorkerDied

JOBS = """
import os, time

def who(place, _):
    return os.getpid(), os.getppid(), os.nice(0)

def work_forever(place, _):
    place.report(os.getpid())
    while True:
        place.pause(0.001)

def deaf(place, _):
    place.report(os.getpid())
    time.sleep(60)

def fall_over(place, _):
    os._exit(3)

def chatter(place, _):
    print("this is not a frame")
    return "done"
"""


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "jobs_of_processes.py").write_text(JOBS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import jobs_of_processes  # type: ignore[import-not-found]

    yield jobs_of_processes
    del sys.modules["jobs_of_processes"]


def ignore(report: object) -> None:
    assert report is not None


def workers(**options: Any) -> HostWorkers:
    return HostWorkers(HostFiles(is_linux=True), **options)


def is_alive(process_id: int) -> bool:
    try:
        state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(process_id: int) -> bool:
    deadline = time.monotonic() + 10
    while is_alive(process_id) and time.monotonic() < deadline:
        time.sleep(0.005)
    return not is_alive(process_id)


def wait_until_ended(process_id: int) -> None:
    """Until every thread of a child has ended, not only its first one: only then does its parent hear of it."""
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)


def test_work_is_done_in_another_process_that_steps_back_and_is_kept(jobs: Any) -> None:
    async def scenario() -> list[tuple[int, int, int]]:
        pool = workers()
        found = [await pool.start(jobs.who, None, ignore).result for _ in range(2)]
        pool.close()
        return found

    first, second = asyncio.run(scenario())
    assert first == second
    process_id, parent_id, niceness = first
    assert parent_id == os.getpid() != process_id
    assert niceness >= 10
    assert wait_until_gone(process_id)


def test_without_processes_a_thread_does_it(jobs: Any) -> None:
    async def scenario() -> tuple[int, int, int]:
        found: tuple[int, int, int] = await workers(in_processes=False).start(jobs.who, None, ignore).result
        return found

    assert asyncio.run(scenario())[0] == os.getpid()


@pytest.mark.parametrize("executable", ["/bin/false", "/nowhere/python"])
def test_where_no_process_can_be_started_a_thread_does_it(
    jobs: Any, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    monkeypatch.setattr(sys, "executable", executable)

    async def scenario() -> tuple[int, int, int]:
        found: tuple[int, int, int] = await workers().start(jobs.who, None, ignore).result
        return found

    assert asyncio.run(scenario())[0] == os.getpid()


def test_a_worker_that_dies_takes_one_job_with_it(jobs: Any) -> None:
    async def scenario() -> tuple[int, int]:
        pool = workers()
        before = await pool.start(jobs.who, None, ignore).result
        with pytest.raises(WorkerDied, match="code 3"):
            await pool.start(jobs.fall_over, None, ignore).result
        after = await pool.start(jobs.who, None, ignore).result
        pool.close()
        return before[0], after[0]

    before, after = asyncio.run(scenario())
    assert before != after
    assert wait_until_gone(after)


def test_a_worker_that_died_while_idle_is_replaced(jobs: Any) -> None:
    async def scenario() -> tuple[int, int]:
        pool = workers()
        first = (await pool.start(jobs.who, None, ignore).result)[0]
        os.kill(first, signal.SIGKILL)
        await asyncio.to_thread(wait_until_ended, first)
        second = (await pool.start(jobs.who, None, ignore).result)[0]
        pool.close()
        return first, second

    first, second = asyncio.run(scenario())
    assert first != second


def test_a_running_job_is_stopped(jobs: Any) -> None:
    async def scenario() -> None:
        pool = workers()
        started: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        handle = pool.start(jobs.work_forever, None, started.set_result)
        await started
        handle.stop()
        with pytest.raises(WorkCancelled):
            await asyncio.wait_for(handle.result, 10)
        pool.close()

    asyncio.run(scenario())


def test_words_for_a_worker_that_died_are_lost_without_a_sound(jobs: Any) -> None:
    async def scenario() -> None:
        pool = workers()
        started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        handle = pool.start(jobs.deaf, None, started.set_result)
        os.kill(await started, signal.SIGKILL)
        while not handle.result.done():
            handle.tell("anyone?")
            await asyncio.sleep(0)
        handle.tell("nobody")
        handle.stop()
        with pytest.raises(WorkerDied):
            await handle.result
        pool.close()

    asyncio.run(scenario())


def test_an_idle_worker_ends_after_a_while(jobs: Any) -> None:
    async def scenario() -> bool:
        pool = workers(idle_seconds=0.01)
        process_id = (await pool.start(jobs.who, None, ignore).result)[0]
        return await asyncio.to_thread(wait_until_gone, process_id) if await asyncio.sleep(0.05, True) else False

    assert asyncio.run(scenario())


def test_what_a_job_prints_is_not_taken_for_its_answer(jobs: Any) -> None:
    async def scenario() -> str:
        pool = workers()
        answer: str = await pool.start(jobs.chatter, None, ignore).result
        pool.close()
        return answer

    assert asyncio.run(scenario()) == "done"


PARENT = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
import jobs_of_processes as jobs
from millbeck.host import real_environment

async def main():
    job = getattr(jobs, sys.argv[2])
    errand = real_environment().workers.start(job, None, lambda pid: print(pid, flush=True))
    await errand.result

asyncio.run(main())
"""


@pytest.mark.parametrize("job", ["work_forever", "deaf"])
def test_a_killed_parent_leaves_no_orphan(jobs: Any, tmp_path: Path, job: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path), job], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    worker_id = int(parent.stdout.readline())
    assert is_alive(worker_id)
    parent.kill()
    parent.wait()
    assert wait_until_gone(worker_id)
    parent.stdout.close()


def test_nothing_is_loaded_before_there_is_work() -> None:
    program = (
        "import sys; from millbeck.host import real_environment; real_environment(); "
        "assert 'millbeck.host.worker_thread' not in sys.modules; assert 'pickle' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
