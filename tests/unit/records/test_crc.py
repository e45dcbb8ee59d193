"""CRC-32C's published check value, over every kind of buffer, whole and in pieces."""

from __future__ import annotations

import pytest

from millbeck.records.crc import crc32c

CHECK = b"123456789"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_check_value(kind: type) -> None:
    assert crc32c(kind(CHECK)) == 0xE3069283


def test_a_view_inside_a_buffer() -> None:
    assert crc32c(memoryview(b"x" + CHECK + b"y")[1:-1]) == 0xE3069283


@pytest.mark.parametrize("cut", range(len(CHECK) + 1))
def test_continued_from_what_came_before(cut: int) -> None:
    assert crc32c(CHECK[cut:], crc32c(CHECK[:cut])) == 0xE3069283
