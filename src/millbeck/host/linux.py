"""System calls that exist only on Linux. No other module checks the platform.

Callers have a flag that is `IS_LINUX` unless portable mode is forced, and call these functions only if it is set.
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
_PR_SET_NAME = 15
_PR_SET_PDEATHSIG = 1
_MEMORY_FILE_SYSTEMS = (0x01021994, 0x858458F6)  # tmpfs, ramfs
_BLOCK_BYTES = 512
_COUNTS_INPUT = IS_LINUX and os.path.exists("/proc/self/io")  # kernels with task I/O accounting have both
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
_malloc_trim = _library_call("malloc_trim") if IS_LINUX else None  # glibc only


def read_from_page_cache(descriptor: int, size: int, position: int) -> bytearray | None:
    """Read a range from the page cache if it is cached up to the end of the range or file; otherwise None.

    Raises ``OSError`` with EOPNOTSUPP on a file system that does not support it.
    """
    buffer = bytearray(size)
    try:
        count = os.preadv(descriptor, [buffer], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return None
    if count == size:
        return buffer
    # A short count means the end of the file or of the cached pages; reading the next byte distinguishes them.
    try:
        if os.preadv(descriptor, [bytearray(1)], position + count, os.RWF_NOWAIT):
            return None
    except BlockingIOError:
        return None
    del buffer[count:]
    return buffer


def bytes_from_disk() -> int:
    """Bytes that this thread has read from the disk so far; -1 where the kernel does not count them."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_inblock * _BLOCK_BYTES if _COUNTS_INPUT else -1


def is_nowait_unsupported(error: OSError) -> bool:
    """Whether `read_from_page_cache` failed because the file system does not support it."""
    return error.errno in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def is_memory_file_system(descriptor: int) -> bool:
    """Whether the file's file system is in memory, so that a read never blocks."""
    if _fstatfs is None:
        return False
    buffer = (ctypes.c_long * (_STATFS_BYTES // ctypes.sizeof(ctypes.c_long)))()
    if _fstatfs(descriptor, buffer) != 0:
        return False
    return (buffer[0] & 0xFFFFFFFF) in _MEMORY_FILE_SYSTEMS


def start_writeback(descriptor: int, position: int, size: int) -> None:
    """Start writeback of the range's dirty pages; does not block, and ignores failures."""
    if _sync_file_range is not None:
        _sync_file_range(
            descriptor, ctypes.c_int64(position), ctypes.c_int64(size), ctypes.c_uint(_SYNC_FILE_RANGE_WRITE)
        )


def trim_heap() -> None:
    """Return the free pages of the heap to the system, if the C library can."""
    if _malloc_trim is not None:
        _malloc_trim(ctypes.c_size_t(0))


def die_with_parent(signal_number: int) -> bool:
    """Have the kernel send this process a signal when the thread that started it ends; False if it cannot."""
    nothing = ctypes.c_ulong(0)
    return (
        _prctl is not None and _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal_number), nothing, nothing, nothing) == 0
    )


def name_process(name: str) -> None:
    """Have ``ps -e`` and ``top`` show this name, cut to 15 bytes, instead of the interpreter's."""
    if _prctl is not None:
        nothing = ctypes.c_ulong(0)
        _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()), nothing, nothing, nothing)
