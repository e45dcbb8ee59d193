"""Which produced batches are too heavy to be checked on the loop.

The loop serves nobody else while it checks a batch; a thread costs some 60 µs of processor time and holds the
connection. So a batch goes to a thread when its check is expected to take well over that: by its size, by its codec,
and by what the topic makes of it. The sizes and what was measured are in docs/adr/0005.

How much a compressed batch holds is known only when it is decompressed. One that looks light is given the room of
`RAW_BYTES_MAX` on the loop; if that is not enough (`DecompressionLimit`) it turns out to be heavy after all.
"""

from __future__ import annotations

from typing import Final

from millbeck.records.header import ATTRIBUTES_LOW_BYTE, CODEC_MASK
from millbeck.records.kernels import COMPILED
from millbeck.records.validation import Rules

LIGHT_BYTES_MAX: Final = 16 * 1024
"""Nothing up to this size is heavy, whatever is to be done with it."""
RAW_BYTES_MAX: Final = 256 * 1024 if COMPILED else 64 * 1024
COMPRESSED_BYTES_MAX: Final = 64 * 1024
PLAIN_BYTES_MAX: Final = 1024 * 1024 if COMPILED else 64 * 1024


def is_heavy(batch: bytes, rules: Rules) -> bool:
    """Whether to check this batch on a thread; may not know yet for a compressed one."""
    size = len(batch)
    if size <= LIGHT_BYTES_MAX:
        return False
    codec = batch[ATTRIBUTES_LOW_BYTE] & CODEC_MASK
    if rules.codec is not None and rules.codec != codec:
        return True
    return size > (COMPRESSED_BYTES_MAX if codec else PLAIN_BYTES_MAX)
