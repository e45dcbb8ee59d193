"""CRC-32C (Castagnoli), the checksum of record batches and producer snapshots.

An alias of ``fastcrc``, which reads any contiguous buffer without copying it and releases the GIL on large input.
"""

from __future__ import annotations

from collections.abc import Callable

from fastcrc import crc32 as _crc32

crc32c: Callable[..., int] = _crc32.iscsi
"""``crc32c(buffer, value=0)``: the checksum of ``buffer``; ``value`` is the checksum of the preceding bytes."""
