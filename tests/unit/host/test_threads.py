"""What is particular to real threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

from millbeck.host.threads import HostThreads


def test_no_more_threads_than_allowed_and_none_before_they_are_needed() -> None:
    release = threading.Event()
    running = []

    def job() -> str:
        running.append(threading.current_thread().name)
        release.wait(10)
        return threading.current_thread().name

    async def scenario() -> list[str]:
        threads = HostThreads(thread_count=3)
        jobs = [threads.run(job) for _ in range(9)]
        while len(running) < 3:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        assert len(running) == 3
        release.set()
        names = await asyncio.gather(*jobs)
        threads.close()
        return names

    before = threading.active_count()
    names = asyncio.run(scenario())
    assert len(names) == 9
    assert len(set(names)) <= 3
    assert threading.active_count() <= before + 3


def test_jobs_start_in_order() -> None:
    started: list[int] = []

    async def scenario() -> None:
        threads = HostThreads(thread_count=1)
        await asyncio.gather(*(threads.run(started.append, number) for number in range(100)))
        threads.close()

    asyncio.run(scenario())
    assert started == list(range(100))


def test_a_cancelled_job_that_has_not_started_never_does() -> None:
    release = threading.Event()
    ran: list[Any] = []

    async def scenario() -> None:
        threads = HostThreads(thread_count=1)
        first = threads.run(release.wait, 10)
        second = threads.run(ran.append, "second")
        second.cancel()
        release.set()
        await first
        await threads.run(ran.append, "third")
        threads.close()

    asyncio.run(scenario())
    assert ran == ["third"]


def test_a_stuck_job_does_not_keep_the_process_alive() -> None:
    program = """
import asyncio, threading
from millbeck.host.threads import HostThreads
started = threading.Event()
def stuck():
    started.set()
    threading.Event().wait()
async def main():
    threads = HostThreads(thread_count=2)
    threads.run(stuck)
    await threads.run(started.wait)
asyncio.run(main())
print("done")
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert finished.stdout == "done\n"


def test_a_loop_that_closed_meanwhile_is_no_error() -> None:
    threads = HostThreads(thread_count=1)
    release, finished = threading.Event(), threading.Event()

    async def abandon() -> None:
        threads.run(release.wait, 10)

    asyncio.run(abandon())
    release.set()

    async def go_on() -> None:
        await threads.run(finished.set)

    asyncio.run(go_on())
    threads.close()
    assert finished.is_set()
