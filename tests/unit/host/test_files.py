"""What the contract suite cannot provoke: short writes, full disks, file systems that cannot be probed."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.host import dirty_pages, linux
from millbeck.host import files as files_module
from millbeck.host.files import HostFile, HostFiles
from millbeck.kernel.environment import OpenMode


@pytest.fixture(params=[True, False], ids=["linux", "portable"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    opened = HostFiles(is_linux=request.param).open(f"{tmp_path}/a", OpenMode.WRITE)
    yield opened
    opened.close()


def _limit(monkeypatch: pytest.MonkeyPatch, size_max: int) -> None:
    """Let the kernel take only so many bytes per call."""
    real_pwrite = os.pwrite

    def pwrite(descriptor: int, data: Any, position: int) -> int:
        return real_pwrite(descriptor, bytes(data)[:size_max], position)

    def pwritev(descriptor: int, buffers: Any, position: int) -> int:
        return real_pwrite(descriptor, b"".join(buffers)[:size_max], position)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(os, "pwritev", pwritev)


@pytest.mark.parametrize("size_max", [1, 3, 7, 8, 100])
@pytest.mark.parametrize("buffers", [[b"01234567"], [b"01", b"", b"234", b"567"]])
def test_short_writes_are_continued(
    file: HostFile, monkeypatch: pytest.MonkeyPatch, size_max: int, buffers: Any
) -> None:
    _limit(monkeypatch, size_max)
    file.write(buffers, 2)
    assert file.read(100, 0) == b"\0\x0001234567"


def test_a_disk_that_fills_up_in_the_middle_raises(file: HostFile, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite = os.pwrite
    room = 5

    def take(descriptor: int, data: bytes, position: int) -> int:
        nonlocal room
        if room == 0:
            raise OSError(errno.ENOSPC, "full")
        count = real_pwrite(descriptor, data[:room], position)
        room -= count
        return count

    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, position: take(descriptor, bytes(data), position))
    monkeypatch.setattr(os, "pwritev", lambda descriptor, parts, position: take(descriptor, b"".join(parts), position))
    with pytest.raises(OSError) as caught:
        file.write([b"0123", b"4567"], 0)
    assert caught.value.errno == errno.ENOSPC
    assert file.read(100, 0) == b"01234"


def test_a_kernel_that_takes_nothing_and_says_nothing_is_an_error(
    file: HostFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwrite", lambda *arguments: 0)
    monkeypatch.setattr(os, "pwritev", lambda *arguments: 0)
    with pytest.raises(OSError) as caught:
        file.write([b"0123"], 0)
    assert caught.value.errno == errno.EIO


def test_short_reads_are_continued(file: HostFile, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write([b"0123456789"], 0)
    real_pread = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, size, position: real_pread(descriptor, min(size, 3), position))
    assert file.read(8, 1) == b"12345678"
    assert file.read(100, 0) == b"0123456789"


def _refuse_probes(monkeypatch: pytest.MonkeyPatch, *, error: int = errno.EOPNOTSUPP, in_memory: bool) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(error, "no")

    monkeypatch.setattr(os, "preadv", refuse)
    monkeypatch.setattr(linux, "is_memory_file_system", lambda descriptor: in_memory)


def test_where_the_cache_cannot_be_probed_a_memory_file_is_simply_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HostFiles(is_linux=True).open(f"{tmp_path}/a", OpenMode.WRITE)
    file.write([b"abc"], 0)
    _refuse_probes(monkeypatch, in_memory=True)
    assert file.read_nowait(10, 0) == b"abc"
    assert file.reads_nowait


def test_where_the_cache_cannot_be_probed_a_disk_file_declines_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HostFiles(is_linux=True).open(f"{tmp_path}/a", OpenMode.WRITE)
    file.write([b"abc"], 0)
    assert file.reads_nowait
    _refuse_probes(monkeypatch, in_memory=False)
    assert file.read_nowait(10, 0) is None
    assert not file.reads_nowait


def test_an_error_of_the_disk_is_not_mistaken_for_missing_support(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HostFiles(is_linux=True).open(f"{tmp_path}/a", OpenMode.WRITE)
    _refuse_probes(monkeypatch, error=errno.EIO, in_memory=True)
    with pytest.raises(OSError) as caught:
        file.read_nowait(10, 0)
    assert caught.value.errno == errno.EIO
    assert file.reads_nowait


def test_sync_goes_through_the_drives_cache_where_that_is_a_call_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(files_module, "_FULL_FSYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", lambda descriptor, command: calls.append(command))
    files = HostFiles(is_linux=False)
    files.open(f"{tmp_path}/a", OpenMode.WRITE).sync()
    files.sync_directory(str(tmp_path))
    assert calls == [51, 51]


def test_sync_falls_back_where_a_file_system_has_no_such_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, command: int) -> None:
        raise OSError(errno.ENOTSUP, "not here")

    synced: list[Any] = []
    monkeypatch.setattr(files_module, "_FULL_FSYNC", 51)
    monkeypatch.setattr(fcntl, "fcntl", unsupported)
    monkeypatch.setattr(os, "fsync", synced.append)
    HostFiles(is_linux=False).open(f"{tmp_path}/a", OpenMode.WRITE).sync()
    assert len(synced) == 1


@pytest.mark.parametrize("is_gathering", [True, False])
def test_writeback_is_started_where_pages_gather(
    file: HostFile, monkeypatch: pytest.MonkeyPatch, is_gathering: bool
) -> None:
    started = []
    monkeypatch.setattr(dirty_pages.DirtyPages, "should_write_back", lambda pages: is_gathering)
    monkeypatch.setattr(linux, "start_writeback", lambda *arguments: started.append(arguments))
    is_portable = not file.reads_nowait
    file.start_writeback(4096, 8192)
    assert started == ([(file.descriptor(), 4096, 8192)] if is_gathering and not is_portable else [])


def test_descriptors_do_not_leak_into_children_and_are_closed(tmp_path: Path) -> None:
    files = HostFiles(is_linux=True)
    file = files.open(f"{tmp_path}/a", OpenMode.WRITE)
    descriptor = file.descriptor()
    assert descriptor is not None
    assert not os.get_inheritable(descriptor)
    file.close()
    with pytest.raises(OSError):
        os.fstat(descriptor)
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    lock = files.lock(f"{tmp_path}/.lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{tmp_path}/.lock")
    lock.release()
    files.sync_directory(str(tmp_path))
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before


def test_the_limit_of_open_files_is_the_process_own() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = soft if soft != resource.RLIM_INFINITY else 1 << 30
    assert HostFiles(is_linux=False).open_files_limit() == expected


@pytest.mark.parametrize("buffers", [[b"a"], [b"a", b"b"]])
def test_a_full_disk_is_named_by_its_file(tmp_path: Path, buffers: Any) -> None:
    """The kernel is asked by descriptor and does not say."""
    full = HostFiles(is_linux=True).open("/dev/full", OpenMode.WRITE)
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        full.write(buffers, 0)
    full.close()


@pytest.mark.parametrize("call", ["read", "write", "truncate", "allocate", "sync"])
def test_every_error_of_a_file_names_it(file: HostFile, monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for name in ("pread", "pwrite", "ftruncate", "posix_fallocate", "fdatasync", "fsync"):
        monkeypatch.setattr(os, name, fail)
    monkeypatch.setattr(files_module, "_FULL_FSYNC", None)
    arguments = {"read": (1, 0), "write": ([b"a"], 0), "truncate": (0,), "allocate": (9,), "sync": ()}[call]
    with pytest.raises(OSError, match="Input/output error") as raised:
        getattr(file, call)(*arguments)
    assert raised.value.filename == file.path
