"""Decides which produced batches are too expensive to validate on the event loop.

While the event loop validates a batch it serves no other request; a thread costs some 60 µs of CPU time, and the
connection's next requests wait for it. So a batch is validated on a thread when that is expected to take well over 60
µs, judging by its size, its codec and the topic's compression type. Sizes and measurements are in docs/adr/0005.

The size of a compressed batch is known only after decompression. One that looks light is decompressed on the loop up to
`RAW_BYTES_MAX`; if that is not enough (`DecompressionLimit`), it is heavy after all.
"""

from __future__ import annotations

from typing import Final

from millbeck.records.header import ATTRIBUTES_LOW_BYTE, CODEC_MASK
from millbeck.records.native import COMPILED
from millbeck.records.validation import ValidationRules

LIGHT_BYTES_MAX: Final = 16 * 1024
"""The size up to which every batch is validated on the event loop."""
RAW_BYTES_MAX: Final = 256 * 1024 if COMPILED else 64 * 1024
COMPRESSED_BYTES_MAX: Final = 64 * 1024
PLAIN_BYTES_MAX: Final = 1024 * 1024 if COMPILED else 64 * 1024


def is_heavy(batch: bytes, rules: ValidationRules) -> bool:
    """Whether to validate this batch on a thread; for a compressed batch this is an estimate."""
    size = len(batch)
    if size <= LIGHT_BYTES_MAX:
        return False
    codec = batch[ATTRIBUTES_LOW_BYTE] & CODEC_MASK
    if rules.codec is not None and rules.codec != codec:
        return True
    return size > (COMPRESSED_BYTES_MAX if codec else PLAIN_BYTES_MAX)
