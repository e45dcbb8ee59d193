"""The comparison with Kafka's classes as a test of the interop suite."""

from __future__ import annotations

from tests.interop.records import check


def test_every_metadata_record_agrees_with_kafka() -> None:
    assert check.main() == 0
