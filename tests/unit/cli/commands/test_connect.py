"""``millbeck connect``: configurations in files, and records through their transforms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.pipeline.connect.connectors.declared import CONNECTORS
from millbeck.pipeline.connect.plugins import BUILT_IN

SINK = {
    "connector.class": "FileStreamSink",
    "topics": "orders",
    "key.converter": "String",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "transforms": "drop,whole",
    "transforms.drop.type": "Filter",
    "transforms.drop.predicate": "isSoft",
    "transforms.whole.type": "Cast$Value",
    "transforms.whole.spec": "id:int8",
    "predicates": "isSoft",
    "predicates.isSoft.type": "HasHeaderKey",
    "predicates.isSoft.name": "soft",
}


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    path = tmp_path / "sink.json"
    path.write_text(json.dumps({"name": "orders", "config": SINK}))
    return path


def test_a_right_configuration(run: Callable[..., Result], sink: Path) -> None:
    result = run("connect", "validate", str(sink))
    assert (result.exit_code, result.stdout) == (0, "1 configuration checked, no errors\n")
    assert json.loads(run("connect", "validate", str(sink), "-o", "json").stdout) == []


def test_errors_stand_at_their_settings(run: Callable[..., Result], sink: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.properties"
    wrong.write_text("name=w\nconnector.class=FileStreamSource\ntasks.max=none\nbatch.seize=5\n")
    unknown = tmp_path / "unknown.json"
    unknown.write_text(json.dumps({"name": "u", "connector.class": "FileSink"}))
    result = run("connect", "validate", str(sink), str(wrong), str(unknown), "-o", "json")
    assert result.exit_code == 1
    rows = [(Path(row["file"]).name, row["setting"]) for row in json.loads(result.stdout)]
    assert rows == [
        ("wrong.properties", "tasks.max"),
        ("wrong.properties", "tasks.max"),
        ("wrong.properties", "topic"),
        ("unknown.json", "connector.class"),
    ]
    assert "did you mean FileStreamSink" in result.stdout
    assert "batch.seize: no such setting; it has no effect" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a connector is a JSON object"),
        ('{"name":"a","config":{"name":"b"}}', "name in config (b) differs from name (a)"),
        ('{"name":"a","config":{},"initial":1}', "initial: no such member; there are name, config and initial_state"),
        ('{"topics":["a"]}', "topics: a setting's value is a text, not a list"),
    ],
)
def test_a_file_that_is_no_configuration(fails: Callable[..., str], tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert message in fails("connect", "validate", str(path))


def test_a_missing_file(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "nothing.json" in fails("connect", "validate", str(tmp_path / "nothing.json"))


def test_records_are_shown_behind_each_stage(run: Callable[..., Result], sink: Path) -> None:
    result = run("connect", "try", str(sink), "--value", '{"id":300}', "--key", "k", "--header", "trace=7")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "orders-0@0",
        '  converters: topic=orders  key="k"  key_schema=string?  value={"id":300}  headers=trace=7',
        "  transforms.drop: not for this record",
        '  transforms.whole: topic=orders  key="k"  key_schema=string?  value={"id":44}  headers=trace=7',
    ]
    dropped = run("connect", "try", str(sink), "--value", "{}", "--header", "soft=1", "-o", "json")
    assert json.loads(dropped.stdout)[0]["stages"][1] == {"stage": "transforms.drop", "record": None}


def test_a_record_that_fails_is_shown_with_its_error(run: Callable[..., Result], sink: Path) -> None:
    result = run("connect", "try", str(sink), "--value", '{"id":"x"}', "--value", "{", "-o", "json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)
    assert first["stages"][-1] == {
        "stage": "transforms.whole",
        "error": "Value (x) was out of range for requested data type",
    }
    assert second["record"] == "orders-0@1"
    assert [stage["stage"] for stage in second["stages"]] == ["converters"]


def test_lines_of_a_source_are_shown_as_they_are_stored(run: Callable[..., Result], tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    path.write_text(
        "name=s\nconnector.class=FileStreamSource\ntopic=lines\ntransforms=hoist\n"
        "transforms.hoist.type=HoistField$Value\ntransforms.hoist.field=line\n"
    )
    result = run("connect", "try", str(path), "--value", "one")
    assert result.stdout.splitlines() == [
        "line 1",
        '  source: topic=lines  value="one"  value_schema=string',
        '  transforms.hoist: topic=lines  value={"line":"one"}  value_schema={line:string}',
        '  converters: topic=lines  key=null  value={"schema":{"type":"struct","fields":[{"type":"string",'
        '"optional":false,"field":"line"}],"optional":false},"payload":{"line":"one"}}',
    ]
    assert run("connect", "try", str(path)).exit_code == 1


def test_what_is_missing_to_try_is_said(fails: Callable[..., str], sink: Path, tmp_path: Path) -> None:
    path = tmp_path / "pattern.json"
    path.write_text(json.dumps({"connector.class": "FileStreamSink", "topics.regex": "a.*"}))
    assert "name one with --topic" in fails("connect", "try", str(path), "--value", "x")
    assert "NAME=TEXT" in fails("connect", "try", str(sink), "--value", "x", "--header", "trace")
    path.write_text(json.dumps({**SINK, "transforms.whole.spec": "${env:SPEC}"}))
    assert "transforms: a variable of a config provider" in fails("connect", "try", str(path), "--value", "x")
    path.write_text(json.dumps({**SINK, "transforms.drop.predicate": "isHard"}))
    assert "transforms.drop.predicate" in fails("connect", "try", str(path), "--value", "x")


def test_classes_and_their_settings(run: Callable[..., Result], fails: Callable[..., str]) -> None:
    listed = json.loads(run("connect", "plugins", "-o", "json").stdout)
    assert {row["type"] for row in listed} == {
        "sink", "source", "converter", "header_converter", "transformation", "predicate"
    }  # fmt: skip
    assert len(listed) == len(CONNECTORS) + len(BUILT_IN)
    found = json.loads(run("connect", "plugins", "FileStreamSource", "-o", "json").stdout)
    assert [each["name"] for each in found] == ["file", "topic", "batch.size"]
    assert "(required)" in run("connect", "plugins", "RegexRouter").stdout
    assert "did you mean RegexRouter" in fails("connect", "plugins", "RegexRuter")
