"""A sink's options: where to, how safely, under which name."""

from __future__ import annotations

import pytest

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.sink_options import BATCH_BYTES, SinkOptions, parse_sink_options


def parse(**options: str) -> SinkOptions:
    return parse_sink_options({"kafka.bootstrap.servers": "h:1", **options})


def test_defaults() -> None:
    found = parse()
    assert (found.topic, found.delivery, found.transactional_id) == (None, "at_least_once", None)
    assert found.batch_bytes == BATCH_BYTES
    assert found.settings == {"bootstrap.servers": "h:1", "client.id": "millbeck-spark-sink"}
    assert not found.is_exactly_once


def test_settings_of_the_producer() -> None:
    found = parse(**{"Topic": "a", "kafka.compression.type": "zstd", "kafka.batch.size": "1000"})
    assert (found.topic, found.batch_bytes) == ("a", 1000)
    assert found.settings["compression.type"] == "zstd"
    assert "batch.size" not in found.settings


def test_transactions_have_a_name_that_lasts() -> None:
    named = parse(**{"delivery": "Exactly_Once", "kafka.transactional.id": "revenue"})
    assert named.is_exactly_once
    assert named.transactional_id == "revenue"
    assert "transactional.id" not in named.settings
    derived = [
        parse(delivery="exactly_once", checkpointLocation=place).transactional_id for place in ("/a", "/a", "/b")
    ]
    assert derived[0] == derived[1] != derived[2]
    assert str(derived[0]).startswith("millbeck-")


REFUSED = {
    "no delivery": ({"delivery": "twice"}, "at_least_once or exactly_once"),
    "no name": ({"delivery": "exactly_once"}, "needs an id that stays the same after restarts"),
    "a name for nothing": ({"kafka.transactional.id": "x"}, "set delivery=exactly_once too"),
    "an empty topic": ({"topic": " "}, "topic is empty"),
    "a serializer": ({"kafka.value.serializer": "x"}, "value column must be binary or string"),
    "no number": ({"kafka.batch.size": "big"}, r"kafka\.batch\.size must be a number of bytes"),
    "no servers": ({"kafka.bootstrap.servers": " "}, r"kafka\.bootstrap\.servers is missing"),
}


@pytest.mark.parametrize(("options", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        parse(**options)


def test_misspelt_options_are_errors_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOption, match="there is no option delivry; did you mean delivery"):
        parse_sink_options({"kafka.bootstrap.servers": "h:1", "delivry": "exactly_once"})
    parse_sink_options({"kafka.bootstrap.servers": "h:1", "failOnDataLoss": "false", "queryName": "q"})
