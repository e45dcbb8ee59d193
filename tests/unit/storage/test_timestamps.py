"""What ListOffsets asks."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.records import batch as batches


@pytest.fixture(params=["one segment", "many segments", "reopened"])
def filled(world: Any, request: pytest.FixtureRequest) -> Any:
    """Batches of two records each; timestamps rise, fall and repeat."""
    world.configure(internal_segment_bytes="100000" if request.param == "one segment" else "300")
    for epoch, timestamp in enumerate((100, 200, 150, 300, 250, 300, 50)):
        world.append(world.batch(2, timestamp=timestamp), leader_epoch=epoch)
    if request.param == "reopened":
        world.close_and_reopen()
    return world


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (0, (100, 0, 0)),
        (100, (100, 0, 0)),
        (101, (101, 1, 0)),
        (102, (200, 2, 1)),
        (202, (300, 6, 3)),
        (301, (301, 7, 3)),
    ],
    ids=str,
)
def test_the_first_record_that_is_late_enough(filled: Any, timestamp: int, expected: tuple[int, int, int]) -> None:
    assert filled.log.offset_for_timestamp(timestamp) == expected


def test_none_is_late_enough(filled: Any) -> None:
    assert filled.log.offset_for_timestamp(302) is None


def test_records_before_the_log_start_do_not_count(filled: Any) -> None:
    filled.log.delete_records(3)
    assert filled.log.offset_for_timestamp(0) == (201, 3, 1)
    assert filled.log.offset_for_timestamp(201) == (201, 3, 1)
    filled.log.delete_records(8)
    assert filled.log.offset_for_timestamp(251) == (251, 9, 4)
    assert filled.log.offset_for_timestamp(300) == (300, 10, 5)


def test_records_that_may_not_be_seen_yet_do_not_count(filled: Any) -> None:
    assert filled.log.offset_for_timestamp(300, upto_offset=6) is None
    assert filled.log.offset_for_timestamp(300, upto_offset=7) == (300, 6, 3)


def test_the_first_record_with_the_largest_timestamp(filled: Any) -> None:
    assert filled.log.offset_of_max_timestamp() == (301, 7, 3)


def test_an_empty_log_has_none(world: Any) -> None:
    assert world.log.offset_for_timestamp(0) is None
    assert world.log.offset_of_max_timestamp() is None
    world.append(world.batch(timestamp=-1))
    assert world.log.offset_of_max_timestamp() is None


def test_a_broker_stamped_batch_gives_its_first_record(world: Any) -> None:
    world.append(world.batch(3, append_timestamp=500))
    assert world.log.offset_of_max_timestamp() == (500, 0, 0)
    assert world.log.offset_for_timestamp(400) == (500, 0, 0)


def test_a_damaged_time_index_is_rebuilt(world: Any) -> None:
    for timestamp in (100, 200, 300, 400, 500):
        world.append(world.batch(timestamp=timestamp))
    world.log.roll(0)
    world.close_and_reopen()
    world.write_file("00000000000000000000.timeindex", b"not an index")
    assert world.log.offset_for_timestamp(250) == (300, 2, 0)


def test_the_largest_timestamp_is_that_of_a_record_not_of_an_emptied_batch(world: Any) -> None:
    world.append(world.batch(2, timestamp=50))
    world.append(world.batch(timestamp=40))
    world.append(batches.assemble(b"", record_count=0, last_offset_delta=0, base_timestamp=-1, max_timestamp=90))
    found = world.log.offset_of_max_timestamp()
    assert found is not None
    assert found[:2] == (51, 1)
    assert world.log.offset_for_timestamp(60) is None
