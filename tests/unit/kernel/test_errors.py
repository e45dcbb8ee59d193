"""The table of errors, held against another implementation's table."""

from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode

from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError

KNOWN_ELSEWHERE = [code for code in ErrorCode if code.value != errors.NONE]


def test_table_has_every_code_and_no_other() -> None:
    assert sorted(errors.by_code) == sorted(code.value for code in KNOWN_ELSEWHERE)
    assert sorted(errors.by_code) == [-1, *range(1, 134)]


@pytest.mark.parametrize("known", KNOWN_ELSEWHERE, ids=lambda code: code.name)
def test_name_and_retriability_agree(known: ErrorCode) -> None:
    ours = errors.by_code[known.value]
    assert ours.kafka_name == known.name.upper()
    assert ours.retriable == known.retriable
    assert errors.by_name[ours.kafka_name] is ours


def test_class_name_is_the_kafka_name_in_camel_case() -> None:
    irregular = {"InvalidTopic"}
    for kind in errors.by_code.values():
        camel = "".join(word.capitalize() for word in kind.kafka_name.split("_"))
        assert kind.__name__ == camel or kind.__name__ in irregular


def test_every_error_has_a_text() -> None:
    for kind in errors.by_code.values():
        assert kind.__doc__
        assert kind().message == str(kind()) == kind.__doc__


def test_a_message_replaces_the_text() -> None:
    error = errors.InvalidTopic("no such name")
    assert (error.message, str(error), error.code) == ("no such name", "no such name", 17)


def test_from_code_keeps_the_message_and_survives_unknown_codes() -> None:
    assert isinstance(errors.from_code(6), errors.NotLeaderOrFollower)
    assert errors.from_code(40, "bad").message == "bad"
    unknown = errors.from_code(9999)
    assert isinstance(unknown, errors.UnknownServerError)
    assert "9999" in unknown.message


def test_derived_class_keeps_the_code_and_stays_out_of_the_table() -> None:
    class LocalNarrowing(errors.CorruptMessage):
        """Narrower."""

    assert (LocalNarrowing.code, LocalNarrowing.retriable, LocalNarrowing.kafka_name) == (2, True, "CORRUPT_MESSAGE")
    assert errors.by_code[2] is errors.CorruptMessage


def test_a_code_cannot_be_declared_twice() -> None:
    with pytest.raises(AssertionError, match="6 is declared twice"):
        type("Again", (ApiError,), {}, code=6)
    assert errors.by_code[6] is errors.NotLeaderOrFollower


def test_errors_that_carry_more() -> None:
    refused = errors.InvalidRecord("bad batch", [errors.RecordError(3, "no key")])
    assert refused.record_errors == [errors.RecordError(batch_index=3, message="no key")]
    assert errors.InvalidRecord().record_errors == []
    assert errors.ThrottlingQuotaExceeded(throttle_time_ms=120).throttle_time_ms == 120
