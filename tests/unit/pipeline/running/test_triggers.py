"""The setting trigger."""

from __future__ import annotations

import pytest

from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.triggers import parse_trigger


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("1 second", {"processingTime": "1000 milliseconds"}),
        ("0 seconds", {"processingTime": "0 milliseconds"}),
        ("real-time", {"realTime": "60000 milliseconds"}),
        ("real-time 30s", {"realTime": "30000 milliseconds"}),
        (" real-time 2 minutes", {"realTime": "120000 milliseconds"}),
    ],
)
def test_batches_and_real_time(text: str, arguments: dict[str, str]) -> None:
    assert parse_trigger(text).arguments == arguments


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("often", "'often' is not a length of time"),
        ("real-time soon", "'soon' is not a length of time.*; or real-time, or real-time 30 seconds"),
        ("real-time 4s", "batches in real time last 5 seconds at least, not 4s"),
    ],
)
def test_what_is_no_trigger_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(DefinitionError, match=complaint):
        parse_trigger(text)


def test_the_expected_latency_is_told() -> None:
    assert parse_trigger("real-time").latency.startswith("milliseconds")
    assert parse_trigger("2 seconds").latency == "tenths of a second more than the interval of batches, 2 s"
