"""System calls that only Linux has. Nothing else in the package asks which system it runs on.

Callers hold a flag that is `IS_LINUX` unless portable mode is forced, and reach these functions only under it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import sys
from collections.abc import Callable

IS_LINUX = sys.platform == "linux"

_SYNC_FILE_RANGE_WRITE = 2
_PR_SET_PDEATHSIG = 1
_MEMORY_FILE_SYSTEMS = (0x01021994, 0x858458F6)  # tmpfs, ramfs
_BLOCK_BYTES = 512
_COUNTS_INPUT = IS_LINUX and os.path.exists("/proc/self/io")  # a kernel that accounts for tasks' input has both
_STATFS_BYTES = 256  # struct statfs is smaller on every architecture; f_type is its first word


def _library_call(name: str) -> Callable[..., int] | None:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int
    return function  # type: ignore[no-any-return]


_sync_file_range = _library_call("sync_file_range") if IS_LINUX else None
_fstatfs = _library_call("fstatfs") if IS_LINUX else None
_prctl = _library_call("prctl") if IS_LINUX else None


def read_cached(descriptor: int, size: int, position: int) -> bytearray | None:
    """What of the range is in the page cache, if that is all of it up to the end of the file; otherwise None.

    Raises ``OSError`` with EOPNOTSUPP on a file system that cannot answer.
    """
    buffer = bytearray(size)
    try:
        count = os.preadv(descriptor, [buffer], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return None
    if count == size:
        return buffer
    # A short count is the end of the file or the end of what is cached; asking for the next byte tells them apart.
    try:
        if os.preadv(descriptor, [bytearray(1)], position + count, os.RWF_NOWAIT):
            return None
    except BlockingIOError:
        return None
    del buffer[count:]
    return buffer


def bytes_from_disk() -> int:
    """What this thread has had the disk read so far; -1 where the kernel does not count it."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock * _BLOCK_BYTES if _COUNTS_INPUT else -1


def cannot_probe(error: OSError) -> bool:
    """Whether `read_cached` failed because the file system does not support the question."""
    return error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def lives_in_memory(descriptor: int) -> bool:
    """Whether the file's file system has no disk behind it, so that a read never waits."""
    if _fstatfs is None:
        return False
    buffer = (ctypes.c_long * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_long)))()
    if _fstatfs(descriptor, buffer) != 0:
        return False
    return (buffer[0] & 0xFFFFFFFF) in _MEMORY_FILE_SYSTEMS


def start_writeback(descriptor: int, position: int, size: int) -> None:
    """Begin writing dirty pages of the range; does not wait, and failures are of no interest."""
    if _sync_file_range is not None:
        _sync_file_range(
            descriptor, ctypes.c_int64(position), ctypes.c_int64(size), ctypes.c_uint(_SYNC_FILE_RANGE_WRITE)
        )


def die_with_parent(signal_number: int) -> bool:
    """Have the kernel send this process a signal when the thread that started it ends; False where it cannot."""
    nothing = ctypes.c_ulong(0)
    return (
        _prctl is not None and _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), nothing, nothing, nothing) == 0
    )
