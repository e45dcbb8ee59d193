"""Dead letters as the command shows them; against a node it runs in the end-to-end tests."""

from __future__ import annotations

from millbeck.cli.groups.dead_letters import row_of
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

PLACE = TopicPartition("dlq.jobs", 1)
TOLD = {"topic": "t", "partition": "3", "offset": "17", "group": "jobs", "delivery.count": "5", "message": "why"}


def letter(**others: str) -> Record:
    headers = tuple((f"__dlq.errors.{name}", value.encode()) for name, value in (TOLD | others).items())
    return Record(offset=8, timestamp=99, key=None, value=None, headers=(("mine", None), *headers))


def test_a_letter_says_where_the_record_stands_and_why_it_was_given_up() -> None:
    assert row_of(PLACE, letter(), "jobs") == {
        "topic": "t",
        "partition": "3",
        "offset": "17",
        "delivery_count": "5",
        "message": "why",
        "letter": "dlq.jobs-1@8",
        "timestamp": 99,
    }


def test_letters_of_other_groups_and_other_records_are_left_out() -> None:
    assert row_of(PLACE, letter(group="other"), "jobs") is None
    assert row_of(PLACE, Record(offset=8, timestamp=99, key=None, value=b"x", headers=()), "jobs") is None
