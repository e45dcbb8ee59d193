from __future__ import annotations

import pytest

from millbeck.coordinator.group import records
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share.records import (
    DECLARED,
    SHARE_KEYS,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
)


@pytest.mark.parametrize(("number", "key", "value"), DECLARED)
def test_a_record_comes_back_as_it_went(number: int, key: type, value: type) -> None:
    record = GroupRecord(key(), value())
    encoded = records.encode(record)
    assert encoded[0][:2] == number.to_bytes(2, "big")
    assert records.decode(*encoded) == record
    assert key in SHARE_KEYS


def test_the_bytes_are_those_of_kafka() -> None:
    key, value = records.encode(GroupRecord(ShareGroupMetadataKey("g"), ShareGroupMetadataValue(7, -1)))
    assert key.hex() == "000b" + "0001" + "67"
    assert value is not None
    assert value.hex() == "0000" + "00000007" + "ffffffffffffffff" + "00"
