"""The calls that only Linux has."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.host import linux

pytestmark = pytest.mark.skipif(not linux.IS_LINUX, reason="these calls exist on Linux only")


@pytest.fixture
def descriptor(tmp_path: Path) -> Iterator[int]:
    opened = os.open(f"{tmp_path}/a", os.O_RDWR | os.O_CREAT)
    os.pwrite(opened, b"0123456789", 0)
    yield opened
    os.close(opened)


def _read_or_skip(descriptor: int, size: int, position: int) -> bytearray | None:
    try:
        return linux.read_from_page_cache(descriptor, size, position)
    except OSError as error:
        if linux.is_nowait_unsupported(error):
            pytest.skip("this file system cannot probe its cache")
        raise


def test_cached_bytes_are_read_up_to_the_end_of_the_file(descriptor: int) -> None:
    assert _read_or_skip(descriptor, 4, 2) == bytearray(b"2345")
    assert _read_or_skip(descriptor, 100, 6) == bytearray(b"6789")
    assert _read_or_skip(descriptor, 4, 50) == bytearray(b"")


def test_a_read_that_would_wait_is_none(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def would_block(*arguments: object) -> int:
        raise BlockingIOError(errno.EAGAIN, "would block")

    monkeypatch.setattr(os, "preadv", would_block)
    assert linux.read_from_page_cache(descriptor, 4, 0) is None


@pytest.mark.parametrize("probe", ["blocks", "finds more"])
def test_a_range_that_is_cached_in_part_is_none(descriptor: int, monkeypatch: pytest.MonkeyPatch, probe: Any) -> None:
    calls = []

    def half(descriptor: int, buffers: list[bytearray], position: int, flags: int) -> int:
        calls.append(position)
        if len(calls) == 1:
            return 3
        if probe == "blocks":
            raise BlockingIOError(errno.EAGAIN, "would block")
        return 1

    monkeypatch.setattr(os, "preadv", half)
    assert linux.read_from_page_cache(descriptor, 8, 0) is None
    assert calls == [0, 3]


def test_only_memory_file_systems_live_in_memory(descriptor: int) -> None:
    in_memory = os.memfd_create("a")
    try:
        assert linux.is_memory_file_system(in_memory)
    finally:
        os.close(in_memory)
    with open("/proc/self/status") as elsewhere:
        assert not linux.is_memory_file_system(elsewhere.fileno())
    assert not linux.is_memory_file_system(-1)


def test_writeback_is_a_hint_that_never_fails(descriptor: int) -> None:
    linux.start_writeback(descriptor, 0, 10)
    linux.start_writeback(-1, 0, 10)
    assert os.pread(descriptor, 10, 0) == b"0123456789"


def test_only_missing_support_means_that_a_file_cannot_be_probed() -> None:
    assert linux.is_nowait_unsupported(OSError(errno.EOPNOTSUPP, ""))
    assert not linux.is_nowait_unsupported(OSError(errno.EIO, ""))


def test_what_a_thread_reads_from_the_disk_is_counted(tmp_path: Path) -> None:
    size = 1 << 20
    opened = os.open(f"{tmp_path}/large", os.O_RDWR | os.O_CREAT)
    try:
        os.pwrite(opened, os.urandom(size), 0)
        os.fsync(opened)
        if linux.bytes_from_disk() < 0 or linux.is_memory_file_system(opened):
            pytest.skip("nothing is counted here")
        before = linux.bytes_from_disk()
        os.pread(opened, size, 0)
        assert linux.bytes_from_disk() == before
        os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
        if linux.read_from_page_cache(opened, 1, size // 2) is not None:
            pytest.skip("this file system keeps what it is told to forget")
        os.pread(opened, size, 0)
        assert size // 2 < linux.bytes_from_disk() - before < 3 * size
    finally:
        os.close(opened)
