"""The recorded answers of Kafka's classes are those that they still give."""

from __future__ import annotations

from tests.interop.connect import record


def test_the_recorded_answers_are_kafkas() -> None:
    assert record.main() == 0
