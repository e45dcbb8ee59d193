"""From slices to parts: at once when warm, after a retry or a thread when not, and never with a lease left over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest
from standing_in import needs_sources

from millbeck.kernel.environment import FileSlice, Part
from millbeck.kernel.errors import KafkaStorageError
from millbeck.server.broker import Broker
from millbeck.server.handlers.fetch.reading import COPIED_BYTES_MAX, TRIED_STEP_BYTES, WARMING_STEP_BYTES, load

pytestmark = needs_sources


class Disk:
    """A file that is cold for its next ``cold`` attempts and fails when told to."""

    path = "/data/t-0/0.log"

    def __init__(self, content: bytes, *, cold: int = 0, reads_nowait: bool = True) -> None:
        self.content = content
        self.cold = cold
        self.reads_nowait = reads_nowait
        self.error: OSError | None = None
        self.reads: list[tuple[int, int]] = []

    def read_nowait(self, size: int, position: int) -> bytes | None:
        if self.cold or not self.reads_nowait:
            self.cold = max(0, self.cold - 1)
            return None
        return self._read(size, position)

    def read(self, size: int, position: int) -> bytes:
        self.reads.append((size, position))
        return self._read(size, position)

    def _read(self, size: int, position: int) -> bytes:
        if self.error is not None:
            raise self.error
        return self.content[position : position + size]


class Loop:
    """Stands for the broker: timers and tasks wait until the test runs them."""

    def __init__(self) -> None:
        self.timers: list[Callable[[], None]] = []
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.thread_jobs = 0
        self.deadlines = self

    def after(self, delay_ms: int, callback: Callable[[], None]) -> None:
        assert delay_ms == 1
        self.timers.append(callback)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(work)

    async def in_thread(self, job: Callable[..., Any], *arguments: Any) -> Any:
        self.thread_jobs += 1
        return job(*arguments)


class Reading:
    def __init__(self, disk: Disk, *ranges: tuple[int, int]) -> None:
        self.loop = Loop()
        self.released = 0
        self.answers: list[list[Sequence[Part]] | KafkaStorageError] = []
        slices = [FileSlice(cast(Any, disk), position, size, self._release) for position, size in ranges]
        load(cast(Broker, self.loop), slices, self.answers.append)

    def _release(self) -> None:
        self.released += 1

    def run_timer(self) -> None:
        self.loop.timers.pop()()

    def run_task(self) -> None:
        asyncio.run(self.loop.tasks.pop())

    @property
    def parts(self) -> list[list[Part]]:
        (answer,) = self.answers
        assert not isinstance(answer, KafkaStorageError)
        return [list(parts) for parts in answer]


def test_warm_slices_are_copied_at_once() -> None:
    reading = Reading(Disk(b"abcdef"), (0, 2), (3, 3))
    assert reading.parts == [[b"ab"], [b"def"]]
    assert reading.released == 2


def test_what_is_cold_once_is_tried_again_a_millisecond_later() -> None:
    reading = Reading(Disk(b"abcdef", cold=1), (0, 6))
    assert (reading.answers, reading.released) == ([], 0)
    reading.run_timer()
    assert reading.parts == [[b"abcdef"]]
    assert (reading.released, reading.loop.thread_jobs) == (1, 0)


def test_what_stays_cold_is_read_on_a_thread() -> None:
    reading = Reading(Disk(b"abcdef", cold=2), (1, 4))
    reading.run_timer()
    assert reading.answers == []
    reading.run_task()
    assert reading.parts == [[b"bcde"]]
    assert (reading.released, reading.loop.thread_jobs) == (1, 1)


def test_where_the_kernel_cannot_say_the_thread_comes_at_once() -> None:
    reading = Reading(Disk(b"abcdef", reads_nowait=False), (0, 6))
    assert reading.loop.timers == []
    reading.run_task()
    assert reading.parts == [[b"abcdef"]]


def test_large_replies_stay_slices_and_keep_their_leases() -> None:
    size = COPIED_BYTES_MAX + 1
    disk = Disk(b"x" * size)
    reading = Reading(disk, (0, size))
    ((part,),) = reading.parts
    assert isinstance(part, FileSlice)
    assert (part.size, reading.released, disk.reads) == (size, 0, [])


@pytest.mark.parametrize("hole", range(4), ids=["first", "second", "third", "last"])
def test_a_large_reply_with_a_cold_stretch_anywhere_is_not_handed_to_sendfile(hole: int) -> None:
    size = 3 * TRIED_STEP_BYTES + 10
    cold_from = min(hole * TRIED_STEP_BYTES, size - 1)

    class Patchy(Disk):
        def read_nowait(self, size: int, position: int) -> bytes | None:
            is_cold = cold_from <= position < cold_from + TRIED_STEP_BYTES
            return None if is_cold else super().read_nowait(size, position)

    reading = Reading(Patchy(b"x" * size), (0, size))
    assert (reading.answers, len(reading.loop.timers)) == ([], 1)


def test_a_large_cold_reply_is_brought_in_step_by_step_and_stays_slices() -> None:
    size = 2 * WARMING_STEP_BYTES + 10
    disk = Disk(b"x" * size, cold=2)
    reading = Reading(disk, (0, size))
    reading.run_timer()
    reading.run_task()
    ((part,),) = reading.parts
    assert isinstance(part, FileSlice)
    assert reading.released == 0
    assert [count for count, _ in disk.reads] == [WARMING_STEP_BYTES, WARMING_STEP_BYTES, 10]


@pytest.mark.parametrize("size", [10, COPIED_BYTES_MAX + 1], ids=["small", "large"])
@pytest.mark.parametrize("cold", [0, 9], ids=["warm", "cold"])
def test_a_failing_disk_is_told_once_and_keeps_no_lease(size: int, cold: int) -> None:
    disk = Disk(b"x" * size, cold=cold)
    disk.error = OSError(5, "no")
    reading = Reading(disk, (0, size), (0, size))
    if cold:
        reading.run_timer()
        reading.run_task()
    (answer,) = reading.answers
    assert isinstance(answer, KafkaStorageError)
    assert reading.released == 2


@pytest.mark.parametrize("cold", [0, 9], ids=["warm", "cold"])
def test_a_file_that_is_shorter_than_its_slice_is_an_error(cold: int) -> None:
    reading = Reading(Disk(b"abc", cold=cold), (0, 5))
    if cold:
        reading.run_timer()
        reading.run_task()
    (answer,) = reading.answers
    assert isinstance(answer, KafkaStorageError)
    assert "ends within a batch" in str(answer)
    assert reading.released == 1


def test_warming_a_file_that_became_shorter_ends() -> None:
    size = COPIED_BYTES_MAX + 1
    disk = Disk(b"x" * 10, cold=9)
    reading = Reading(disk, (0, size))
    reading.run_timer()
    reading.run_task()
    assert len(disk.reads) < 5
    assert len(reading.answers) == 1
