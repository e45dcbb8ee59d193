from __future__ import annotations

import json

import click
import click.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.cli.kafka_tools.formats import print_table
from millbeck.cli.output import output_option, show, show_rows, table, yaml_lines

yaml_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)


def test_columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right() -> None:
    rows = [
        {"name": "a", "partition_count": 3, "is_internal": True, "isr": [1, 2]},
        {"name": "longer", "partition_count": 12, "is_internal": False, "isr": []},
    ]
    assert table(rows, list(rows[0])).splitlines() == [
        "NAME    PARTITION-COUNT  IS-INTERNAL  ISR",
        "a                     3  yes          1,2",
        "longer               12  no           -",
    ]


def test_what_is_missing_is_a_dash_and_decides_no_alignment() -> None:
    rows: list[dict[str, object]] = [{"offset": None, "host": None}, {"offset": 5, "host": None}]
    assert table(rows, ["offset", "host"]).splitlines() == ["OFFSET  HOST", "     -  -", "     5  -"]


def test_names_that_clients_choose_control_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "g\x1b]0;title\x07\nadmin  ok\x9b2J é"
    escaped = r"g\x1b]0;title\x07\nadmin  ok\x9b2J é"
    assert table([{"group": name, "members": [name]}], ["group", "members"]).splitlines()[1:] == [
        f"{escaped}  {escaped}"
    ]
    for output in ("json", "yaml"):
        show_rows([{"group": name}], output)
        shown = capsys.readouterr().out
        assert all(each.isprintable() or each == "\n" for each in shown)
    show(name, "json")
    assert json.loads(capsys.readouterr().out) == name
    print_table([{"group": name, "partitions": [name]}], {"GROUP": "group", "PARTITIONS": "partitions"})
    assert escaped in capsys.readouterr().out.splitlines()[1]


def test_mappings_are_shown_in_a_cell() -> None:
    assert table([{"configs": {"a": 1, "b": "x"}}], ["configs"]).splitlines()[1] == "a=1,b=x"


def test_no_rows_print_nothing_as_a_table_and_an_empty_list_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows([], "table")
    assert capsys.readouterr().out == ""
    show_rows([], "json")
    assert json.loads(capsys.readouterr().out) == []
    show_rows([], "yaml")
    assert capsys.readouterr().out == "[]\n"


def test_json_keeps_the_structure(capsys: pytest.CaptureFixture[str]) -> None:
    value = {"name": "x", "partitions": [{"isr": [1]}], "none": None}
    show(value, "json")
    assert json.loads(capsys.readouterr().out) == value


WIDE = [{"topic": "orders-" * 12, "partition": 7, "host": "broker-1.example.com"}]


@pytest.mark.parametrize("room", [120, 80, 60, 48])
def test_the_widest_text_columns_are_shortened_until_a_table_fits(room: int) -> None:
    lines = table(WIDE, list(WIDE[0]), room=room).splitlines()
    assert max(map(len, lines)) == min(room, len(table(WIDE, list(WIDE[0])).splitlines()[1]))
    assert "  7  " in lines[1]
    assert ("…" in lines[1]) == (room < 115)


def test_columns_are_not_shortened_beyond_recognition() -> None:
    lines = table(WIDE, list(WIDE[0]), room=10).splitlines()
    assert lines[1] == "orders…          7  broker…"


def test_headings_are_wrapped_where_a_table_does_not_fit_otherwise() -> None:
    row = {
        "group": "workers",
        "current_offset": 30,
        "log_end_offset": 50,
        "consumer_id": "millbeck-cli-8f2c",
        "lag": 20,
    }
    assert table([row], list(row), room=45).splitlines() == [
        "         CURRENT-  LOG-END-  CONSUMER-",
        "GROUP      OFFSET    OFFSET  ID           LAG",
        "workers        30        50  millbeck-c…   20",
    ]
    assert table([row], list(row), room=80).count("\n") == 1


def test_a_table_that_is_not_shown_on_a_terminal_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    show_rows(WIDE * 2, "table")
    assert capsys.readouterr().out.count("orders-" * 12) == 2


def test_the_line_of_headings_can_be_left_out() -> None:
    @click.command
    @output_option
    def command(output: str) -> None:
        show_rows([{"name": "a", "count": 1}], output)

    run = click.testing.CliRunner().invoke
    assert run(command, []).stdout == "NAME  COUNT\na         1\n"
    assert run(command, ["--no-headers"]).stdout == "a         1\n"
    assert json.loads(run(command, ["--no-headers", "-o", "json"]).stdout) == [{"name": "a", "count": 1}]


YAML = {
    "scalars": (
        {"a": 1, "b": None, "c": True, "d": "plain", "e": "two words"},
        'a: 1|b: null|c: true|d: plain|e: "two words"',
    ),
    "words that mean something else": (["no", "1", "null", "on", ""], '- "no"|- "1"|- "null"|- "on"|- ""'),
    "a mapping in a list": ([{"a": 1, "b": [2, 3]}], "- a: 1|  b:|    - 2|    - 3"),
    "a list in a list": ([[1], []], "- - 1|- []"),
    "nothing in it": ({"a": {}, "b": []}, "a: {}|b: []"),
    "a line break": ({"a": "x\ny"}, 'a: "x\\ny"'),
}


@pytest.mark.parametrize(("value", "expected"), YAML.values(), ids=YAML.keys())
def test_yaml(value: object, expected: str) -> None:
    assert yaml_lines(value) == expected.split("|")


@settings(max_examples=50)
@given(st.lists(yaml_texts, max_size=4))
def test_every_text_is_one_line_and_quoted_unless_it_is_a_plain_word(texts: list[str]) -> None:
    lines = yaml_lines(texts) if texts else []
    assert len(lines) == len(texts)
    for line, text in zip(lines, texts, strict=True):
        shown = line.removeprefix("- ")
        assert shown == text or json.loads(shown) == text
