"""A source's options: Spark's names in any case, one meaning each, and an error that names the wrong one."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.source_options import (
    EARLIEST,
    LATEST,
    Position,
    SourceOptions,
    includes_headers,
    parse_source_options,
)

SERVERS = {"kafka.bootstrap.servers": "h:1"}


def batch(**options: str) -> SourceOptions:
    return parse_source_options({**SERVERS, "subscribe": "a", **options}, is_streaming=False)


def stream(**options: str) -> SourceOptions:
    return parse_source_options({**SERVERS, "subscribe": "a", **options}, is_streaming=True)


def test_defaults() -> None:
    assert (batch().starting, batch().ending) == (Position(everywhere=EARLIEST), Position(everywhere=LATEST))
    assert stream().starting == Position(everywhere=LATEST)
    found = stream()
    assert found.fails_on_data_loss
    assert not found.includes_headers
    assert found.settings == {
        "bootstrap.servers": "h:1",
        "client.id": "millbeck-spark-source",
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
    }


def test_names_are_read_in_any_case() -> None:
    found = parse_source_options(
        {
            "KAFKA.Bootstrap.servers": "h:1",
            "SUBSCRIBE": " b , a,b",
            "FailOnDataLoss": "FALSE",
            "includeheaders": "true",
        },
        is_streaming=True,
    )
    assert found.topics == ("b", "a")
    assert not found.fails_on_data_loss
    assert found.includes_headers
    assert includes_headers({"INCLUDEHEADERS": "true"})


def test_client_settings_pass_through_and_groups_do_not() -> None:
    found = batch(**{"kafka.client.rack": "r1", "kafka.group.id": "g", "groupIdPrefix": "team"}).settings
    assert found["client.rack"] == "r1"
    assert found["client.id"] == "team"
    assert "group.id" not in found


def test_what_to_read() -> None:
    by_pattern = parse_source_options({**SERVERS, "subscribePattern": "a.*"}, is_streaming=True)
    assert (by_pattern.pattern, by_pattern.topics) == ("a.*", ())
    assert "a.*" in by_pattern.subscription
    assigned = parse_source_options({**SERVERS, "assign": '{"b":[1,0,1]}'}, is_streaming=True)
    assert assigned.assigned == {"b": (0, 1)}
    assert "b" in assigned.subscription


def test_positions() -> None:
    assert batch(startingOffsets='{"a":{"0":5,"1":-2}}').starting == Position(offsets={"a": {0: 5, 1: EARLIEST}})
    assert batch(startingTimestamp="77").starting == Position(timestamp_ms=77)
    assert batch(endingTimestamp="77", endingOffsets="latest").ending == Position(timestamp_ms=77)
    by_time = batch(startingOffsetsByTimestamp='{"a":{"0":9}}', startingOffsets="earliest")
    assert by_time.starting == Position(timestamps={"a": {0: 9}})
    assert stream(startingOffsets="EARLIEST").starting == Position(everywhere=EARLIEST)
    assert batch(startingOffsetsByTimestampStrategy="latest").fails_beyond_last_timestamp is False


def test_numbers_and_durations() -> None:
    found = stream(maxOffsetsPerTrigger="100", minOffsetsPerTrigger="10", maxTriggerDelay="90s", minPartitions="4")
    assert (found.offsets_per_trigger_max, found.offsets_per_trigger_min) == (100, 10)
    assert (found.trigger_delay_max_s, found.partitions_min) == (90.0, 4)
    assert stream(maxTriggerDelay="2h").trigger_delay_max_s == 7200.0


REFUSED: dict[str, tuple[dict[str, str], bool, str]] = {
    "nothing to read": ({}, True, "one of the options subscribe"),
    "two ways": ({"subscribe": "a", "assign": '{"a":[0]}'}, True, "subscribe and assign"),
    "no topic": ({"subscribe": " , "}, True, "contains no topic"),
    "assign is a list": ({"assign": "[1]"}, True, "JSON object"),
    "assign names no number": ({"assign": '{"a":["0"]}'}, True, "assign must be JSON like"),
    "assign is empty": ({"assign": "{}"}, True, "contains no partition"),
    "no JSON": ({"subscribe": "a", "startingOffsets": "first"}, True, "startingOffsets is not JSON"),
    "below the earliest": ({"subscribe": "a", "startingOffsets": '{"a":{"0":-3}}'}, True, "startingOffsets has"),
    "offsets as a list": ({"subscribe": "a", "startingOffsets": '{"a":[1]}'}, True, "JSON like"),
    "latest in a batch": ({"subscribe": "a", "startingOffsets": "latest"}, False, "cannot be latest"),
    "latest for one": ({"subscribe": "a", "startingOffsets": '{"a":{"0":-1}}'}, False, "cannot be latest"),
    "ends at the start": ({"subscribe": "a", "endingOffsets": "earliest"}, False, "cannot be earliest"),
    "a stream with an end": ({"subscribe": "a", "endingOffsets": "latest"}, True, "a stream has no end"),
    "a batch with a trigger": ({"subscribe": "a", "maxOffsetsPerTrigger": "5"}, False, "for streaming queries"),
    "zero": ({"subscribe": "a", "minPartitions": "0"}, True, "minPartitions must be above 0"),
    "no number": ({"subscribe": "a", "maxOffsetsPerTrigger": "many"}, True, "maxOffsetsPerTrigger must be a number"),
    "more than most": (
        {"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
        True,
        "is above maxOffsetsPerTrigger",
    ),
    "no boolean": ({"subscribe": "a", "failOnDataLoss": "maybe"}, True, "failOnDataLoss must be true or false"),
    "no duration": ({"subscribe": "a", "maxTriggerDelay": "soon"}, True, "maxTriggerDelay must be a duration"),
    "no strategy": (
        {"subscribe": "a", "startingOffsetsByTimestampStrategy": "guess"},
        True,
        "error or latest",
    ),
    "managed": ({"subscribe": "a", "kafka.auto.offset.reset": "earliest"}, True, "use startingOffsets"),
    "the sink's word": ({"topic": "a"}, True, "use subscribe"),
    "servers without prefix": ({"subscribe": "a", "bootstrap.servers": "h:1"}, True, "use kafka.bootstrap.servers"),
}


@pytest.mark.parametrize(("options", "is_streaming", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_is_named(options: dict[str, str], is_streaming: bool, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        parse_source_options({**SERVERS, **options}, is_streaming=is_streaming)


def test_brokers_must_be_named() -> None:
    nowhere: dict[str, Any] = {"subscribe": "a"}
    with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers is missing"):
        parse_source_options(nowhere, is_streaming=True)


def test_misspelt_options_are_errors_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOption, match="there is no option startingOffset; did you mean startingOffsets"):
        stream(startingOffset="earliest")
    with pytest.raises(InvalidOption, match="there is no option colour "):
        batch(colour="red")


def test_options_of_the_sink_and_of_spark_itself_are_let_through() -> None:
    assert stream(delivery="exactly_once", checkpointLocation="/c", queryName="q") == stream()
