"""From slices to parts: at once when warm, on a thread when not, and never with a lease left over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from millbeck.kernel.environment import FileSlice, Part
from millbeck.kernel.errors import KafkaStorageError
from millbeck.server.broker import Broker
from millbeck.server.fetch.cold_readers import STRETCH_BYTES, ColdReaders
from millbeck.server.fetch.reading import COLD_BYTES_MAX, COPIED_BYTES_MAX, TRIED_STEP_BYTES, load
from tests.unit.server.harness.method_patches import needs_sources

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
        self.tries = 0
        self.disk_bytes: int | None = None
        """How many bytes of a read come from the disk; all of them unless it is set."""

    def read_nowait(self, size: int, position: int) -> bytes | None:
        self.tries += 1
        if self.cold or not self.reads_nowait:
            self.cold = max(0, self.cold - 1)
            return None
        return self._read(size, position)

    def read(self, size: int, position: int) -> bytes:
        self.reads.append((size, position))
        return self._read(size, position)

    def read_counted(self, size: int, position: int) -> tuple[bytes, int]:
        chunk = self.read(size, position)
        return chunk, len(chunk) if self.disk_bytes is None else self.disk_bytes

    def size(self) -> int:
        return len(self.content)

    def _read(self, size: int, position: int) -> bytes:
        if self.error is not None:
            raise self.error
        return self.content[position : position + size]


class Loop:
    """Stands for the broker: tasks wait until the test runs them."""

    def __init__(self) -> None:
        self.tasks: list[Coroutine[Any, Any, None]] = []
        self.thread_jobs = 0
        self.cold_readers = ColdReaders()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(work)

    async def in_thread(self, job: Callable[..., Any], *arguments: Any) -> Any:
        self.thread_jobs += 1
        return job(*arguments)


class Reading:
    def __init__(self, disk: Disk, *ranges: tuple[int, int], loop: Loop | None = None) -> None:
        self.loop = loop or Loop()
        self.released = 0
        self.answers: list[list[Sequence[Part]] | KafkaStorageError] = []
        slices = [FileSlice(cast(Any, disk), position, size, self._release) for position, size in ranges]
        load(cast(Broker, self.loop), slices, self.answers.append)

    def _release(self) -> None:
        self.released += 1

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


def test_what_is_cold_is_read_on_a_thread() -> None:
    reading = Reading(Disk(b"abcdef", cold=1), (1, 4))
    assert (reading.answers, reading.released) == ([], 0)
    reading.run_task()
    assert reading.parts == [[b"bcde"]]
    assert (reading.released, reading.loop.thread_jobs) == (1, 1)


def test_a_reader_that_was_cold_goes_on_without_being_tried_on_the_loop() -> None:
    disk = Disk(b"abcdef", cold=9)
    first = Reading(disk, (0, 2))
    first.run_task()
    tries = disk.tries
    second = Reading(disk, (2, 2), loop=first.loop)
    assert disk.tries == tries
    second.run_task()
    assert second.parts == [[b"cd"]]
    elsewhere = Reading(disk, (0, 2), loop=first.loop)
    assert disk.tries > tries
    elsewhere.run_task()


def test_a_reader_that_came_to_the_end_of_the_file_is_tried_again() -> None:
    disk = Disk(b"abcd", cold=1)
    first = Reading(disk, (0, 4))
    first.run_task()
    disk.content += b"ef"
    assert Reading(disk, (4, 2), loop=first.loop).parts == [[b"ef"]]


def test_where_the_kernel_cannot_say_the_thread_comes_at_once() -> None:
    reading = Reading(Disk(b"abcdef", reads_nowait=False), (0, 6))
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
    assert reading.answers == []
    reading.run_task()
    assert reading.parts == [[b"x" * size]]


def test_what_has_no_room_in_a_cold_reply_is_left_out() -> None:
    half = COLD_BYTES_MAX // 2
    disk = Disk(b"x" * (half + 1), cold=1)
    reading = Reading(disk, (0, half), (0, half), (0, half + 1))
    reading.run_task()
    assert [[len(cast(bytes, part)) for part in parts] for parts in reading.parts] == [[half], [half], []]
    assert reading.released == 3


def test_the_first_slice_of_a_cold_reply_is_never_left_out() -> None:
    size = COLD_BYTES_MAX + 1
    reading = Reading(Disk(b"x" * size, cold=1), (0, size), (0, 1))
    reading.run_task()
    assert [sum(len(cast(bytes, part)) for part in parts) for parts in reading.parts] == [size, 0]


@pytest.mark.parametrize("size", [10, COPIED_BYTES_MAX + 1], ids=["small", "large"])
@pytest.mark.parametrize("cold", [0, 9], ids=["warm", "cold"])
def test_a_failing_disk_is_told_once_and_keeps_no_lease(size: int, cold: int) -> None:
    disk = Disk(b"x" * size, cold=cold)
    disk.error = OSError(5, "no")
    reading = Reading(disk, (0, size), (0, size))
    if cold:
        reading.run_task()
    (answer,) = reading.answers
    assert isinstance(answer, KafkaStorageError)
    assert reading.released == 2


@pytest.mark.parametrize("cold", [0, 9], ids=["warm", "cold"])
def test_a_file_that_is_shorter_than_its_slice_is_an_error(cold: int) -> None:
    reading = Reading(Disk(b"abc", cold=cold), (0, 5))
    if cold:
        reading.run_task()
    (answer,) = reading.answers
    assert isinstance(answer, KafkaStorageError)
    assert "ends within a batch" in str(answer)
    assert reading.released == 1


@pytest.mark.parametrize("disk_bytes", [4096, None], ids=["one page was missing", "nothing was there"])
def test_a_reader_is_tried_again_once_the_disk_brings_little_of_what_it_reads(disk_bytes: int | None) -> None:
    size = COPIED_BYTES_MAX + 1
    disk = Disk(b"x" * (STRETCH_BYTES + 10 * size), cold=1)
    disk.disk_bytes = disk_bytes
    broker = Loop()
    reads = 0
    for position in range(0, STRETCH_BYTES + 5 * size, size):
        before = broker.thread_jobs
        reading = Reading(disk, (position, size), loop=broker)
        if broker.tasks:
            reading.run_task()
        reads += broker.thread_jobs - before
    pieces = -(-STRETCH_BYTES // size)
    assert reads == (pieces if disk_bytes else pieces + 5)
