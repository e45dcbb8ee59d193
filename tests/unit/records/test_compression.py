"""Codecs: round trips, formats other libraries write, limits, garbage."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib

import cramjam
import lz4.frame
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.records import compression
from millbeck.records.compression import Codec, CompressionError, DecompressionLimit, compress, decompress

LIMIT = 16 * 1024 * 1024
CODECS = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"".join(b"line %d of a text that compresses\n" % number for number in range(5000))


@given(st.sampled_from(Codec), st.one_of(st.binary(max_size=200), st.integers(0, 200_000).map(bytes)))
@settings(max_examples=80)
def test_round_trip(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data), LIMIT) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_is_taken(codec: Codec, kind: type) -> None:
    compressed = compress(codec, kind(TEXT))
    assert len(compressed) < len(TEXT)
    assert decompress(codec, kind(compressed), LIMIT) == TEXT


def test_no_codec_copies_and_has_a_limit() -> None:
    assert compress(Codec.NONE, memoryview(b"abc")) == b"abc"
    assert decompress(Codec.NONE, memoryview(b"abc"), 3) == b"abc"
    with pytest.raises(DecompressionLimit):
        decompress(Codec.NONE, b"abcd", 3)


@pytest.mark.parametrize(
    ("codec", "fast", "small"), [(Codec.GZIP, 1, 9), (Codec.LZ4, None, 12), (Codec.ZSTD, -5, 19)], ids=str
)
def test_levels_trade_time_for_size(codec: Codec, fast: int | None, small: int) -> None:
    quick, dense = compress(codec, TEXT, fast), compress(codec, TEXT, small)
    assert len(dense) < len(quick)
    assert decompress(codec, dense, LIMIT) == decompress(codec, quick, LIMIT) == TEXT


def test_kafkas_default_lz4_level_is_the_fast_one() -> None:
    assert compress(Codec.LZ4, TEXT, compression.LZ4_LEVEL_DEFAULT) == compress(Codec.LZ4, TEXT)


def test_snappy_is_written_in_java_framing() -> None:
    compressed = compress(Codec.SNAPPY, bytes(40_000))
    assert compressed[:16] == bytes.fromhex("82534e4150505900 00000001 00000001".replace(" ", ""))
    first = int.from_bytes(compressed[16:20], "big")
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + first])) == bytes(32 * 1024)
    rest = compressed[20 + first :]
    assert int.from_bytes(rest[:4], "big") == len(rest) - 4
    assert bytes(cramjam.snappy.decompress_raw(rest[4:])) == bytes(40_000 - 32 * 1024)


def test_snappy_is_read_raw_and_framed() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress(Codec.SNAPPY, raw, LIMIT) == TEXT
    halves = [bytes(cramjam.snappy.compress_raw(part)) for part in (TEXT[:100], TEXT[100:])]
    framed = compress(Codec.SNAPPY, b"") + b"".join(len(half).to_bytes(4, "big") + half for half in halves)
    assert decompress(Codec.SNAPPY, framed, LIMIT) == TEXT


def test_framed_snappy_by_hand() -> None:
    block = b"\x06\x14SNAPPY"  # six bytes follow: one literal of six
    framed = b"\x82SNAPPY\x00" + bytes([0, 0, 0, 1, 0, 0, 0, 1]) + bytes([0, 0, 0, len(block)]) + block
    assert decompress(Codec.SNAPPY, framed, LIMIT) == b"SNAPPY"
    assert compress(Codec.SNAPPY, b"SNAPPY") == framed


BAD_FRAMINGS = {
    "block beyond the end": bytes([0, 0, 0, 9]) + b"\x06\x14SNAPPY",
    "block of no bytes": bytes(4),
    "block size cut short": bytes([0, 0]),
}


@pytest.mark.parametrize("blocks", BAD_FRAMINGS.values(), ids=BAD_FRAMINGS.keys())
def test_bad_framing_raises_the_typed_error(blocks: bytes) -> None:
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"") + blocks, LIMIT)


def test_lz4_frames_have_independent_blocks_of_64_kib() -> None:
    information = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert not information["block_linked"]
    assert information["block_size"] == 64 * 1024
    assert not information["content_checksum"]


def test_gzip_output_does_not_depend_on_the_time() -> None:
    assert compress(Codec.GZIP, TEXT)[4:8] == bytes(4)
    assert gzip.decompress(compress(Codec.GZIP, TEXT)) == TEXT


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_frames_in_a_row_are_read_as_one(codec: Codec) -> None:
    one, two = compress(codec, b"one"), compress(codec, b"two")
    assert decompress(codec, one + two, LIMIT) == b"onetwo"
    assert decompress(codec, one * compression.FRAMES_MAX, LIMIT) == b"one" * compression.FRAMES_MAX
    with pytest.raises(CompressionError, match="frames"):
        decompress(codec, one * (compression.FRAMES_MAX + 1), LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(DecompressionLimit):
        decompress(codec, compressed, len(TEXT) - 1)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_the_limit_counts_all_frames(codec: Codec) -> None:
    half = compress(codec, bytes(600))
    with pytest.raises(DecompressionLimit):
        decompress(codec, half + half, 1000)


def bomb(codec: Codec, size: int) -> bytes:
    return compress(codec, bytes(size))


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_stops_at_the_limit(codec: Codec) -> None:
    with pytest.raises(DecompressionLimit):
        decompress(codec, bomb(codec, 32 * 1024 * 1024), LIMIT)


def test_a_ratio_beyond_1000_is_refused_however_large_the_limit() -> None:
    data = bomb(Codec.ZSTD, 32 * 1024 * 1024)
    assert len(data) * compression.RATIO_MAX < 32 * 1024 * 1024
    with pytest.raises(DecompressionLimit):
        decompress(Codec.ZSTD, data, 1 << 40)


def test_a_small_batch_of_equal_records_is_no_bomb() -> None:
    equal = bytes(compression.RATIO_EXEMPT_BYTES)
    compressed = compress(Codec.ZSTD, equal)
    assert len(compressed) * compression.RATIO_MAX < len(equal)
    assert decompress(Codec.ZSTD, compressed, LIMIT) == equal


def test_a_snappy_length_that_lies_allocates_nothing() -> None:
    four_gigabytes = b"\xff\xff\xff\xff\x0f"
    with pytest.raises(DecompressionLimit):
        decompress(Codec.SNAPPY, four_gigabytes + b"\x00a", LIMIT)
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, b"\x64\x00a", LIMIT)


GARBAGE = {
    "empty": b"",
    "one byte": b"\x00",
    "text": b"this is not compressed",
    "ones": b"\xff" * 40,
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_raises_the_typed_error(codec: Codec, data: bytes) -> None:
    if codec is Codec.SNAPPY and data == b"\x00":
        assert decompress(codec, data, LIMIT) == b"", "a raw snappy block of nothing"
        return
    with pytest.raises(CompressionError):
        decompress(codec, data, LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_cut_short_anywhere_raises_the_typed_error(codec: Codec) -> None:
    data = compress(codec, TEXT[:3000])
    for size in range(len(data)):
        if codec is Codec.SNAPPY and size == 16:
            assert decompress(codec, data[:size], LIMIT) == b"", "the framing's header and no block"
            continue
        with pytest.raises(CompressionError):
            decompress(codec, data[:size], LIMIT)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_bytes_after_the_frame_are_refused(codec: Codec) -> None:
    with pytest.raises(CompressionError):
        decompress(codec, compress(codec, TEXT) + b"junk", LIMIT)


@given(
    st.sampled_from(CODECS),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4),
)
@settings(max_examples=200)
def test_mutations_raise_only_the_typed_error(codec: Codec, mutations: list[tuple[int, int]]) -> None:
    data = bytearray(compress(codec, TEXT[:2000]))
    for position, byte in mutations:
        data[position % len(data)] = byte
    try:
        found = decompress(codec, data, 100_000)
    except CompressionError:
        return
    assert len(found) <= 100_000


def test_gzip_falls_back_to_the_standard_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "isal", None)
    compression._gzip_module.cache_clear()
    try:
        assert compression._gzip_module() is zlib
        assert decompress(Codec.GZIP, compress(Codec.GZIP, TEXT), LIMIT) == TEXT
    finally:
        compression._gzip_module.cache_clear()


def test_no_codec_is_loaded_before_it_is_used() -> None:
    script = (
        "import sys, millbeck.records.validation, millbeck.records.control\n"
        "print([name for name in ('cramjam', 'lz4', 'backports.zstd', 'compression', 'isal') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
