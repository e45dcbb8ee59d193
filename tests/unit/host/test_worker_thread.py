"""Words for a job: none is lost between the moment it is said and the moment the job can hear it."""

from __future__ import annotations

import asyncio

from millbeck.host.worker_process import STOP, TELL
from millbeck.host.worker_thread import HostWorkerHandle


def test_words_wait_for_the_job_and_keep_their_order() -> None:
    heard: list[tuple[object, ...]] = []

    async def scenario() -> None:
        handle = HostWorkerHandle(5, b"", lambda report: None, asyncio.get_running_loop())
        handle.tell("one")
        handle.stop()
        assert heard == []
        handle.connect(heard.append)
        handle.tell("two")
        handle.disconnect()
        handle.tell("too late")

    asyncio.run(scenario())
    assert heard == [(TELL, 5, "one"), (STOP, 5), (TELL, 5, "two")]


def test_giving_up_is_stopping() -> None:
    heard: list[tuple[object, ...]] = []

    async def scenario() -> None:
        handle = HostWorkerHandle(1, b"", lambda report: None, asyncio.get_running_loop())
        handle.connect(heard.append)
        handle.result.cancel()
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert heard == [(STOP, 1)]


def test_a_loop_that_is_gone_is_no_error() -> None:
    calls: list[object] = []

    async def scenario() -> HostWorkerHandle:
        return HostWorkerHandle(1, b"", calls.append, asyncio.get_running_loop())

    handle = asyncio.run(scenario())
    handle.post(calls.append, "too late")
    assert calls == []
