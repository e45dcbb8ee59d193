"""The generator: records are functions of their number, of every type, and as many as asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors.datagen.settings import QUICKSTARTS
from millbeck.pipeline.connect.connectors.datagen.source import DatagenSource
from millbeck.pipeline.connect.connectors.interface import SourceShare
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.errors import ConfigError
from tests.unit.pipeline.connect.connectors.listed_records import made


class Positions:
    def __init__(self, known: Mapping[int, int] | None = None) -> None:
        self.known = dict(known or {})

    def get(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self.known.get(partition["task.id"])
        return None if found is None else {"current.iteration": found}


def source(tasks_max: int = 1, **settings: str) -> DatagenSource:
    given = {"kafka.topic": "t"} | {name.replace("_", "."): text for name, text in settings.items()}
    found: DatagenSource = made(DatagenSource, given, tasks_max=tasks_max)
    return found


@pytest.mark.parametrize("name", QUICKSTARTS)
def test_the_well_known_forms(name: str) -> None:
    made_source = source(quickstart=name)
    records = list(made_source.read(SourceShare(payload=(0, 0, 20))))
    assert len(records) == 20
    assert all(record.key is not None for record in records)
    converter = JsonConverter({})
    for record in records:
        assert json.loads(converter.to_bytes("t", record.value_schema, record.value) or b"")["payload"]
    # Another process makes the same of the same share.
    assert records == list(source(quickstart=name).read(SourceShare(payload=(0, 0, 20))))
    assert records[5:] == list(source(quickstart=name).read(SourceShare(payload=(0, 5, 20))))
    other = list(source(quickstart=name, random_seed="1").read(SourceShare(payload=(0, 0, 20))))
    assert [record.value for record in other] != [record.value for record in records]


def test_a_schema_of_ones_own() -> None:
    avro = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "word", "type": {"type": "string", "arg.properties": {"regex": "a[0-9]{2,3}-[x-z]"}}},
            {"name": "level", "type": {"type": "int", "arg.properties": {"range": {"min": 3, "max": 5}}}},
            {"name": "choice", "type": {"type": "string", "arg.properties": {"options": ["p", "q"]}}},
            {"name": "number", "type": {"type": "long", "arg.properties": {"iteration": {"start": 10, "step": 5}}}},
            {"name": "maybe", "type": ["null", "double"]},
            {"name": "many", "type": {"type": "array", "items": "boolean"}},
            {"name": "named", "type": {"type": "map", "values": "bytes"}},
            {"name": "state", "type": {"type": "enum", "name": "S", "symbols": ["A", "B"]}},
            {"name": "text", "type": {"type": "string", "arg.properties": {"length": {"min": 2, "max": 4}}}},
        ],
    }
    made_source = source(schema_string=json.dumps(avro), schema_keyfield="number")
    records = list(made_source.read(SourceShare(payload=(0, 0, 100))))
    for number, record in enumerate(records):
        assert re.fullmatch(r"a[0-9]{2,3}-[x-z]", record.value["word"])
        assert 3 <= record.value["level"] <= 5
        assert record.value["choice"] in ("p", "q")
        assert record.key == record.value["number"] == 10 + 5 * number
        assert 2 <= len(record.value["text"]) <= 4
        assert record.value["state"] in ("A", "B")
    assert any(record.value["maybe"] is None for record in records)
    assert any(record.value["many"] for record in records)


def test_each_task_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000]
    monkeypatch.setattr("millbeck.pipeline.connect.connectors.datagen.source.now_ms", lambda: now[0])
    made_source = source(tasks_max=2, quickstart="users", max_interval="100", iterations="25")
    made_source.start()
    plan = made_source.plan(Positions())  # type: ignore[arg-type]
    assert [share.payload for share in plan.shares] == [(0, 0, 10), (1, 0, 10)]
    assert plan.again_s == 0.5
    now[0] += 20
    waiting = made_source.plan(Positions({0: 10, 1: 10}))  # type: ignore[arg-type]
    assert (waiting.shares, waiting.again_s) == ((), 0.05)
    now[0] += 980
    plan = made_source.plan(Positions({0: 10, 1: 25}))  # type: ignore[arg-type]
    assert [share.payload for share in plan.shares] == [(0, 10, 25)]
    now[0] += 1000
    done = made_source.plan(Positions({0: 25, 1: 25}))  # type: ignore[arg-type]
    assert (done.shares, done.again_s) == ((), None)


def test_mistakes() -> None:
    settings: dict[str, str | None] = {"name": "n", "connector.class": "Datagen", "kafka.topic": "t"}
    assert "set one of" in validated(settings).entry("quickstart").value.errors[0]
    assert "there are orders" in validated(settings | {"quickstart": "stocks"}).entry("quickstart").value.errors[0]
    with pytest.raises(ConfigError, match="only plain texts and classes"):
        source(schema_string='{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"string",'
               '"arg.properties":{"regex":"(a|b)"}}}]}')  # fmt: skip
    with pytest.raises(ConfigError, match=r"schema\.keyfield"):
        source(quickstart="users", schema_keyfield="nothing")
