from __future__ import annotations

import pytest

from millbeck.metadata.snapshot import SnapshotId
from millbeck.server.metadata.retention import MetadataRetention, RetainedSnapshot

NOW_MS = 100_000
THREE = [RetainedSnapshot(SnapshotId(end, 1), 10, end * 100) for end in (100, 200, 300)]


def begins_at(retention: MetadataRetention, *, log_start_offset: int = 100, end_offset: int = 350) -> int | None:
    """A log with a byte for each record."""
    found = retention.oldest_to_keep(
        THREE, log_start_offset=log_start_offset, log_bytes_from=lambda offset: end_offset - offset, now_ms=NOW_MS
    )
    return None if found is None else found.id.end_offset


@pytest.mark.parametrize(
    ("size_bytes_max", "expected"),
    [(-1, 100), (280, 100), (279, 200), (170, 200), (169, 300), (60, 300), (0, 300)],
)
def test_snapshots_go_from_the_oldest_on_until_the_rest_is_small_enough(size_bytes_max: int, expected: int) -> None:
    assert begins_at(MetadataRetention(size_bytes_max=size_bytes_max)) == expected


@pytest.mark.parametrize(
    ("age_ms_max", "expected"), [(-1, 100), (90_000, 100), (89_999, 200), (79_999, 300), (1, 300), (0, 300)]
)
def test_snapshots_that_are_too_old_go_but_never_the_newest(age_ms_max: int, expected: int) -> None:
    assert begins_at(MetadataRetention(size_bytes_max=-1, age_ms_max=age_ms_max)) == expected


@pytest.mark.parametrize(("size_bytes_max", "expected"), [(-1, None), (380, None), (379, 100), (0, 300)])
def test_what_is_before_the_first_snapshot_is_the_first_to_go(size_bytes_max: int, expected: int | None) -> None:
    assert begins_at(MetadataRetention(size_bytes_max=size_bytes_max), log_start_offset=0) == expected


def test_age_does_not_touch_what_is_before_a_snapshot_that_is_young() -> None:
    assert begins_at(MetadataRetention(size_bytes_max=-1, age_ms_max=90_000), log_start_offset=0) is None
    assert begins_at(MetadataRetention(size_bytes_max=-1, age_ms_max=89_999), log_start_offset=0) == 200


def test_it_is_known_when_the_oldest_will_be_too_old() -> None:
    retention = MetadataRetention(age_ms_max=5)
    assert retention.expires_at_ms(THREE) == 10_006
    assert retention.expires_at_ms(THREE[-1:]) is None, "the newest stays"
    assert MetadataRetention().expires_at_ms(THREE) is None
