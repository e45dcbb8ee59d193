"""Dead letters: their headers, and which of them were sent back."""

from __future__ import annotations

import random

import pytest

from millbeck.pipeline.connect.dead_letters import Redriven, letter_fields, matches, without_letter_headers
from millbeck.pipeline.connect.errors import ConnectError

HEADERS = [
    ("trace", b"7"),
    ("__connect.errors.topic", b"orders"),
    ("__connect.errors.partition", b"1"),
    ("__connect.errors.offset", b"17"),
    ("__connect.errors.connector.name", b"sink"),
    ("__connect.errors.task.id", b"0"),
    ("__connect.errors.stage", b"VALUE_CONVERTER"),
    ("__connect.errors.exception.class.name", b"org.apache.kafka.connect.errors.DataException"),
    ("__connect.errors.exception.message", None),
    ("__connect.errors.stage", b"TRANSFORMATION"),
]


def test_headers_tell_the_place_and_the_latest_failure() -> None:
    fields = letter_fields(HEADERS)
    assert (fields["topic"], fields["partition"], fields["offset"]) == ("orders", "1", "17")
    assert (fields["stage"], fields["message"], fields["stacktrace"]) == ("TRANSFORMATION", "", "")
    assert without_letter_headers(HEADERS) == [("trace", b"7")]


def test_a_letter_is_chosen_by_parts_of_its_fields() -> None:
    fields = letter_fields(HEADERS)
    assert matches(fields, {"exception": "DataException", "partition": "1"})
    assert not matches(fields, {"partition": ""})
    assert not matches(fields, {"topic": "order"})
    assert matches(fields, {})


def test_letters_between_others_are_noted() -> None:
    letters = [(0, True), (1, True), (4, False), (5, True), (9, True), (10, False), (12, True)]
    noted = Redriven.of_letters(letters, 13)
    assert noted == Redriven(4, ((5, 9), (12, 12)))
    assert Redriven.of_note(noted.position, noted.metadata()) == noted
    assert [offset for offset, _ in letters if noted.has(offset)] == [0, 1, 5, 9, 12]


def test_the_note_says_exactly_which_letters_there_were() -> None:
    rng = random.Random(5)
    for _ in range(300):
        offsets = sorted(rng.sample(range(60), rng.randrange(1, 30)))
        letters = [(offset, rng.random() < 0.6) for offset in offsets]
        noted = Redriven.of_letters(letters, offsets[-1] + 1)
        again = Redriven.of_note(noted.position, noted.metadata())
        assert [again.has(offset) for offset, _ in letters] == [is_done for _, is_done in letters]


def test_all_letters_done_is_a_position_alone() -> None:
    noted = Redriven.of_letters([(3, True), (4, True)], 9)
    assert (noted, noted.metadata()) == (Redriven(9), "")


@pytest.mark.parametrize(
    "metadata", ["", "{", "[]", '{"redriven":5}', '{"redriven":[[1]]}', '{"other":1}', "[" * 10_000]
)
def test_metadata_of_anybody_else_says_nothing(metadata: str) -> None:
    assert Redriven.of_note(7, metadata) == Redriven(7)


def test_more_runs_than_metadata_has_room_for_are_refused() -> None:
    letters = [(offset, offset % 2 == 1) for offset in range(2000)]
    with pytest.raises(ConnectError, match="too many to keep"):
        Redriven.of_letters(letters, 2000).metadata()
