"""How the process gives memory back to the system.

The C library returns large blocks at once when they are freed. A broker frees a mebibyte (a batch, a receive buffer)
and wants it again a moment later, and getting it back costs a page fault for every 4 KiB: 800 µs instead of 120 for the
two buffers of a 1 MB batch. So a process that is a broker keeps what it frees, up to a limit.
"""

from __future__ import annotations

import ctypes

from millbeck.host.linux import IS_LINUX

KEPT_BYTES_MAX = 64 << 20
"""What may lie free at the end of the heap before some of it is returned."""
MAPPED_BYTES_MIN = 32 << 20
"""Blocks from this size on are mapped for themselves and returned at once; glibc accepts no more than this."""

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Tune the allocator of this process; False where it cannot be tuned (musl, macOS)."""
    if not IS_LINUX:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(
        mallopt(option, size_bytes) == 1
        for option, size_bytes in ((_M_TRIM_THRESHOLD, KEPT_BYTES_MAX), (_M_MMAP_THRESHOLD, MAPPED_BYTES_MIN))
    )
