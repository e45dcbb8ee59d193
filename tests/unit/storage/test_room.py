from __future__ import annotations

import pytest

from millbeck.storage.room import ROOM_BYTES, is_full


@pytest.mark.parametrize(
    ("free_bytes", "expected"), [(0, True), (ROOM_BYTES - 1, True), (ROOM_BYTES, False), (-1, False)]
)
def test_a_disk_is_full_while_the_next_segment_may_not_fit(free_bytes: int, expected: bool) -> None:
    assert is_full(free_bytes) is expected
