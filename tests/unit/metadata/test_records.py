"""Every record against bytes that Kafka's own classes wrote (tests/interop/records makes the file)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millbeck.metadata import records
from millbeck.metadata.framing import decode
from millbeck.metadata.records import RECORD_TYPES
from millbeck.wire.codec import encoder
from millbeck.wire.schema import schema_of

VECTORS = [line.split(" ", 2) for line in Path(__file__).with_name("kafka_records.txt").read_text("utf-8").splitlines()]


def _record(text: str) -> Any:
    return eval(text, vars(records))


@pytest.mark.parametrize(("version", "framed", "text"), VECTORS)
def test_record_is_written_and_read_as_kafka_does(version: str, framed: str, text: str) -> None:
    record = _record(text)
    data = bytes.fromhex(framed)
    assert encoder(type(record), int(version))(record) == data[3:]
    assert decode(data) == record


def test_every_type_and_version_has_a_vector() -> None:
    covered = {(text.split("(")[0], int(version)) for version, _, text in VECTORS}
    declared = {
        (cls.__name__, version)
        for cls in RECORD_TYPES.values()
        for version in range(schema_of(cls).versions.low, schema_of(cls).versions.high + 1)
    }
    assert covered == declared


def test_types_are_kafkas_numbers() -> None:
    assert sorted(RECORD_TYPES) == [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15, *range(17, 29)]
    assert RECORD_TYPES[2] is records.TopicRecord
    assert RECORD_TYPES[28] is records.ClearElrRecord
