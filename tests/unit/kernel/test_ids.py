"""Names and ids as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.ids import ZERO_UUID, TopicPartition, holds_batch_notes, parse_uuid, uuid_text


def test_a_partition_is_written_like_its_directory() -> None:
    assert str(TopicPartition("my-topic", 3)) == "my-topic-3"
    assert TopicPartition("a", 1) == ("a", 1)


def test_groups_that_sinks_name_by_themselves_are_known_and_no_others() -> None:
    assert holds_batch_notes("millbeck-0123456789abcdef01234567")
    assert not holds_batch_notes("millbeck-revenue")
    assert not holds_batch_notes("my-millbeck-0123456789abcdef01234567")


def test_known_uuids() -> None:
    assert uuid_text(ZERO_UUID) == "A" * 22
    assert uuid_text(bytes(15) + b"\x01") == "A" * 21 + "Q"
    assert uuid_text(b"\xff" * 16) == "_" * 21 + "w"


@given(st.binary(min_size=16, max_size=16))
def test_uuid_text_round_trip(value: bytes) -> None:
    text = uuid_text(value)
    assert len(text) == 22
    assert parse_uuid(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "A" * 21,
        "A" * 23,
        "A" * 21 + "R",
        "A" * 20 + "==",
        "A" * 21 + "!",
        "é" * 22,
        "+" + "A" * 21,
        "A" * 10_000,
    ],
)
def test_text_that_is_no_uuid(text: str) -> None:
    with pytest.raises(ValueError, match="not a uuid"):
        parse_uuid(text)
