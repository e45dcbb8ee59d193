"""Compression codecs of record batches: gzip, snappy, lz4 and zstd, with limits on the decompressed size.

Decompression streams and stops at the limit, so a small batch cannot become a large allocation. There are two limits:
the caller's ``limit_bytes`` and, above 1 MiB of output, a ratio of 1000 to 1. Bad input raises `CompressionError`, too
much output its subclass `DecompressionLimit`; both are `InvalidRecord`, which a producer does not retry.

The output is readable by Kafka's own clients: gzip with a zero modification time, snappy in the Java library's block
framing ("xerial") of 32 KiB blocks, lz4 frames of independent 64 KiB blocks without checksums, one zstd frame. More is
accepted as input: snappy raw or framed, and up to `FRAMES_MAX` consecutive gzip members, lz4 frames or zstd frames.

The libraries are imported when a codec is first used; a broker whose clients do not compress never loads them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final, Protocol

from millbeck.kernel.errors import InvalidRecord

Buffer = bytes | bytearray | memoryview

RATIO_MAX: Final = 1000
RATIO_EXEMPT_BYTES: Final = 1024 * 1024
"""Output up to this size is never rejected for its ratio: a batch of equal records can exceed any ratio."""
FRAMES_MAX: Final = 64

SNAPPY_BLOCK_SIZE: Final = 32 * 1024
SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_SNAPPY_HEADER: Final = SNAPPY_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")

_GZIP_WINDOW: Final = 31  # 15 bits of window, and the gzip wrapper


class Codec(IntEnum):
    """Codec number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_NAMES: Final = {codec.name.lower(): codec for codec in Codec}
"""Codecs by their ``compression.type`` names; ``producer`` is not one."""


class CompressionError(InvalidRecord):
    """Compressed data that is malformed."""


class DecompressionLimit(CompressionError):
    """Compressed data that would exceed the limit when decompressed."""


class _Decompressor(Protocol):
    """The common interface of the zlib, isal, lz4 and zstd decompressors."""

    eof: bool
    unused_data: bytes | None

    def decompress(self, data: Buffer, max_length: int = ..., /) -> bytes: ...


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """Compress ``data``. ``level`` is Kafka's ``compression.<codec>.level``; snappy has none."""
    if codec is Codec.NONE:
        return bytes(data)
    return _COMPRESS[codec](data, level)


def decompress(codec: Codec, data: Buffer, limit_bytes: int) -> bytes:
    """Decompress ``data`` to at most ``limit_bytes``. Raises `CompressionError` or `DecompressionLimit`."""
    if codec is Codec.NONE:
        if len(data) > limit_bytes:
            raise DecompressionLimit(f"{len(data)} bytes exceed the limit of {limit_bytes}")
        return bytes(data)
    limit_bytes = min(limit_bytes, max(len(data) * RATIO_MAX, RATIO_EXEMPT_BYTES))
    if codec is Codec.SNAPPY:
        return _snappy_decompress(data, limit_bytes)
    factory, errors = _STREAMS[codec]()
    return _stream_decompress(codec, factory, errors, data, limit_bytes)


def _stream_decompress(
    codec: Codec,
    factory: Callable[[], _Decompressor],
    errors: tuple[type[Exception], ...],
    data: Buffer,
    limit_bytes: int,
) -> bytes:
    """Decompress one frame after another until the end of the input; a batch is usually one frame in one call."""
    parts: list[bytes] = []
    remaining: Buffer = data
    size = 0
    for _ in range(FRAMES_MAX):
        decompressor = factory()
        try:
            # One byte more than allowed tells "exactly the limit" from "more than the limit".
            part = decompressor.decompress(remaining, limit_bytes - size + 1)
        except errors as error:
            raise CompressionError(f"batch is not valid {codec.name.lower()}: {error}") from error
        size += len(part)
        if size > limit_bytes:
            raise DecompressionLimit(
                f"batch of {len(data)} bytes exceeds the limit of {limit_bytes} bytes when decompressed"
            )
        if not decompressor.eof:
            raise CompressionError(f"batch's {codec.name.lower()} data is truncated")
        remaining = decompressor.unused_data or b""
        if not remaining:
            return b"".join((*parts, part)) if parts else part
        parts.append(part)
    raise CompressionError(f"batch has more than {FRAMES_MAX} {codec.name.lower()} frames")


@cache
def _gzip_module() -> Any:
    """The isal replacement for zlib where it is installed: the same format, three to five times as fast."""
    try:
        from isal import isal_zlib
    except ImportError:
        return zlib
    return isal_zlib


def _gzip_stream() -> tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]:
    module = _gzip_module()
    return lambda: module.decompressobj(_GZIP_WINDOW), (module.error,)


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    # isal has only the levels 0 to 3; an explicit level is passed to zlib.
    module = _gzip_module() if level is None or level == -1 else zlib
    if module is zlib:
        compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    else:
        compressor = module.compressobj(module.ISAL_DEFAULT_COMPRESSION, module.DEFLATED, _GZIP_WINDOW)
    return bytes(compressor.compress(data) + compressor.flush())


@cache
def _lz4_stream() -> tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]:
    from lz4.frame import LZ4FrameDecompressor

    return LZ4FrameDecompressor, (RuntimeError, EOFError, ValueError)


LZ4_LEVEL_DEFAULT: Final = 9
"""Kafka's default level, which means the fast compressor, not a level of the slow one."""


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    from lz4 import frame

    # The Java reader rejects blocks that depend on each other.
    compressed: bytes = frame.compress(
        data,
        compression_level=0 if level is None or level == LZ4_LEVEL_DEFAULT else level,
        block_size=frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return compressed


@cache
def _zstd_module() -> Any:
    try:
        from compression import zstd
    except ImportError:
        from backports import zstd
    return zstd


def _zstd_stream() -> tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]:
    module = _zstd_module()
    return module.ZstdDecompressor, (module.ZstdError, EOFError)


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    module = _zstd_module()
    compressed: bytes = module.compress(data, 3 if level is None else level)
    return compressed


def _snappy_compress(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    parts = [_SNAPPY_HEADER]
    for start in range(0, len(view), SNAPPY_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(view[start : start + SNAPPY_BLOCK_SIZE]))
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _snappy_decompress(data: Buffer, limit_bytes: int) -> bytes:
    if bytes(data[:8]) != SNAPPY_MAGIC:
        return _snappy_block(data, limit_bytes)
    view = memoryview(data)
    parts: list[bytes] = []
    size = 0
    position = len(_SNAPPY_HEADER)
    while position < len(view):
        block_size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if block_size == 0 or block_size > len(view) - position:
            raise CompressionError("batch's snappy blocks have invalid lengths")
        part = _snappy_block(view[position : position + block_size], limit_bytes - size)
        size += len(part)
        parts.append(part)
        position += block_size
    if position != len(view):
        raise CompressionError("batch's snappy header is truncated")
    return b"".join(parts)


def _snappy_block(data: Buffer, limit_bytes: int) -> bytes:
    from cramjam import DecompressionError, snappy

    # The block begins with its length, so a block that is too large is rejected before any allocation.
    size, shift = 0, 0
    for byte in data[:5]:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    else:
        raise CompressionError("batch is not valid snappy: its length field is malformed")
    if size > limit_bytes:
        raise DecompressionLimit(
            f"batch's snappy block has {size} bytes decompressed, more than the limit of {limit_bytes}"
        )
    try:
        return bytes(snappy.decompress_raw(data))
    except DecompressionError as error:
        raise CompressionError(f"batch is not valid snappy: {error}") from error


_COMPRESS: Final[dict[Codec, Callable[[Buffer, int | None], bytes]]] = {
    Codec.GZIP: _gzip_compress,
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}
_STREAMS: Final[dict[Codec, Callable[[], tuple[Callable[[], _Decompressor], tuple[type[Exception], ...]]]]] = {
    Codec.GZIP: _gzip_stream,
    Codec.LZ4: _lz4_stream,
    Codec.ZSTD: _zstd_stream,
}
