"""The queue gives out exactly what was put in, whatever is taken, put back and sent from files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.host.part_queue import FileSliceTruncated, SendQueue, release_slices
from millbeck.kernel.environment import FileSlice

CONTENT = bytes(range(256)) * 8


class MemoryFile:
    """As much of a file as the queue needs."""

    def __init__(self, content: bytes = CONTENT) -> None:
        self.content = content

    def read(self, size: int, position: int) -> bytes:
        return self.content[position : position + size]


class Releases(list[int]):
    def slice(self, position: int, size: int, file: MemoryFile | None = None) -> FileSlice:
        number = len(self)
        self.append(0)

        def release() -> None:
            self[number] += 1

        read: Any = file or MemoryFile()
        return FileSlice(read, position, size, release)


part_plans = st.lists(st.tuples(st.booleans(), st.integers(0, 500), st.integers(0, 300)), max_size=12)


@settings(max_examples=150, deadline=None)
@given(
    plan=part_plans,
    steps=st.lists(st.tuples(st.integers(1, 200), st.integers(0, 400)), min_size=1, max_size=30),
    copied=st.sampled_from([0, 50, 10_000]),
)
def test_bytes_come_out_in_order_and_slices_are_released_once(plan: Any, steps: Any, copied: Any) -> None:
    queue, releases, expected = SendQueue(), Releases(), b""
    parts = []
    for is_slice, position, size in plan:
        expected += CONTENT[position : position + size]
        parts.append(releases.slice(position, size) if is_slice else CONTENT[position : position + size])
    queue.extend(parts)
    assert queue.size_bytes == len(expected)
    out = b""
    turn = 0
    while queue:
        size_max, kernel_takes = steps[turn % len(steps)]
        turn += 1
        buffers = queue.take(size_max, copied_slice_bytes_max=copied)
        if buffers:
            gathered = b"".join(buffers)
            taken = min(max(1, kernel_takes), len(gathered))
            out += gathered[:taken]
            queue.put_back(buffers, taken)
        else:
            part, position, left = queue.first_slice()
            assert left > copied
            count = min(left, max(1, kernel_takes))
            out += part.file.read(count, position)
            queue.advance_first_slice(count)
        assert queue.size_bytes == len(expected) - len(out)
    assert out == expected
    assert list(releases) == [1] * len(releases)


def test_clearing_releases_what_is_left_once() -> None:
    queue, releases = SendQueue(), Releases()
    queue.extend([b"abc", releases.slice(0, 100), releases.slice(0, 200), releases.slice(0, 0)])
    queue.take(50, copied_slice_bytes_max=1000)
    queue.clear()
    queue.clear()
    assert list(releases) == [1, 1, 1]
    assert not queue
    assert queue.size_bytes == 0


def test_a_slice_that_shrank_is_noticed_when_it_is_read() -> None:
    queue, releases = SendQueue(), Releases()
    queue.extend([releases.slice(0, 100, MemoryFile(b"short"))])
    with pytest.raises(FileSliceTruncated):
        queue.take(1000, copied_slice_bytes_max=1000)
    queue.clear()
    assert list(releases) == [1]


def test_taking_stops_before_a_long_slice() -> None:
    queue, releases = SendQueue(), Releases()
    queue.extend([b"header", releases.slice(0, 50), releases.slice(5, 500), b"next"])
    assert not queue.begins_with_slice()
    assert queue.take(10_000, copied_slice_bytes_max=100) == [b"header", CONTENT[:50]]
    assert queue.begins_with_slice()
    assert queue.take(10_000, copied_slice_bytes_max=100) == []
    assert queue.first_slice()[1:] == (5, 500)
    assert not SendQueue().begins_with_slice()


def test_no_more_buffers_are_gathered_than_one_system_call_takes() -> None:
    queue = SendQueue()
    queue.extend([b"x"] * 5000)
    assert len(queue.take(10_000, copied_slice_bytes_max=0)) <= 1024


def test_parts_that_are_not_sent_are_released() -> None:
    releases = Releases()
    release_slices([b"abc", releases.slice(0, 5), releases.slice(0, 0)])
    assert list(releases) == [1, 1]
