"""What is checked on the loop, by size, codec and what the topic makes of it."""

from __future__ import annotations

import pytest

from millbeck.records import batch
from millbeck.records.compression import Codec, DecompressionLimit
from millbeck.records.record import Record
from millbeck.records.validation import ValidationRules, validate
from millbeck.server.requests.heavy_batches import (
    COMPRESSED_BYTES_MAX,
    LIGHT_BYTES_MAX,
    PLAIN_BYTES_MAX,
    RAW_BYTES_MAX,
    is_heavy,
)

KEPT = ValidationRules(max_message_bytes=1 << 30)
GZIPPED = ValidationRules(max_message_bytes=1 << 30, codec=Codec.GZIP)


def of_size(size: int, codec: Codec) -> bytes:
    """Bytes that have a batch's size and codec: all that is looked at."""
    content = bytearray(size)
    content[22] = codec
    return bytes(content)


CASES = {
    "small and plain": (LIGHT_BYTES_MAX, Codec.NONE, KEPT, False),
    "small and to be compressed": (LIGHT_BYTES_MAX, Codec.NONE, GZIPPED, False),
    "to be compressed": (LIGHT_BYTES_MAX + 1, Codec.NONE, GZIPPED, True),
    "to be compressed otherwise": (LIGHT_BYTES_MAX + 1, Codec.LZ4, GZIPPED, True),
    "compressed as the topic wants it": (COMPRESSED_BYTES_MAX, Codec.GZIP, GZIPPED, False),
    "compressed": (COMPRESSED_BYTES_MAX, Codec.LZ4, KEPT, False),
    "large and compressed": (COMPRESSED_BYTES_MAX + 1, Codec.LZ4, KEPT, True),
    "plain": (PLAIN_BYTES_MAX, Codec.NONE, KEPT, False),
    "large and plain": (PLAIN_BYTES_MAX + 1, Codec.NONE, KEPT, True),
    "nothing": (0, Codec.NONE, KEPT, False),
}


@pytest.mark.parametrize(("size", "codec", "rules", "expected"), CASES.values(), ids=CASES.keys())
def test_size_codec_and_topic_decide(size: int, codec: Codec, rules: ValidationRules, expected: bool) -> None:
    content = of_size(size, codec) if size > 22 else bytes(size)
    assert is_heavy(content, rules) is expected


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_a_short_batch_that_holds_much_turns_out_heavy(codec: Codec) -> None:
    records = [Record(-1, 1000, None, bytes(RAW_BYTES_MAX))]
    content = batch.build(records, codec=codec)
    assert not is_heavy(content, KEPT)
    with pytest.raises(DecompressionLimit):
        validate(content, KEPT, 1000, True, RAW_BYTES_MAX)
    assert validate(content, KEPT, 1000).record_count == 1
