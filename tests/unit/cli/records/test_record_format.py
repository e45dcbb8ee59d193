from __future__ import annotations

import json
from base64 import b64decode

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.cli.records.record_format import FormatError, document_formatter, kcat_formatter, property_formatter
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

PLACE = TopicPartition("orders", 3)
RECORD = Record(7, 1700000000000, b"k", b"value", (("a", b"1"), ("b", None), ("a", b"2")))
EMPTY = Record(8, -1, None, None)

FORMATS = {
    "everything": ("%t %p %o %k %s %T %S %K", b"orders 3 7 k value 1700000000000 5 1"),
    "headers in order": ("%h", b"a=1,b=,a=2"),
    "binary length": ("%R%s", b"\0\0\0\5value"),
    "escapes": ("%s\\n\\t\\r\\0\\\\\\x41\\xff", b"value\n\t\r\0\\A\xff"),
    "percent": ("100%% %s", b"100% value"),
    "nothing": ("", b""),
    "other letters": ("é%s", "évalue".encode()),
}


@pytest.mark.parametrize(("text", "expected"), FORMATS.values(), ids=FORMATS.keys())
def test_format_strings(text: str, expected: bytes) -> None:
    assert kcat_formatter(text)(PLACE, RECORD) == expected


def test_null_is_empty_or_what_it_is_told_to_be() -> None:
    assert kcat_formatter("[%k|%s|%K|%S]")(PLACE, EMPTY) == b"[||-1|-1]"
    assert kcat_formatter("[%k|%s]", null=b"NULL")(PLACE, EMPTY) == b"[NULL|NULL]"


@pytest.mark.parametrize("text", ["%y", "%", "a%", "%s %"])
def test_tokens_that_do_not_exist(text: str) -> None:
    with pytest.raises(FormatError):
        kcat_formatter(text)


def test_the_console_consumers_properties() -> None:
    everything = {
        "print.timestamp": "true",
        "print.partition": "true",
        "print.offset": "true",
        "print.headers": "true",
        "print.key": "true",
        "key.separator": "|",
    }
    assert (
        property_formatter(everything)(PLACE, RECORD)
        == b"CreateTime:1700000000000|Partition:3|Offset:7|a:1,b:null,a:2|k|value\n"
    )
    assert property_formatter({"print.headers": "true", "print.value": "false"})(PLACE, EMPTY) == b"NO_HEADERS\n"
    assert property_formatter({})(PLACE, EMPTY) == b"null\n"
    assert property_formatter({"null.literal": "-", "line.separator": ";"})(PLACE, EMPTY) == b"-;"
    with pytest.raises(FormatError, match=r"print\.cats"):
        property_formatter({"print.cats": "true"})


payloads = st.none() | st.binary(max_size=20)


@settings(max_examples=50)
@given(payloads, payloads, st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), payloads), max_size=3))
def test_json_and_yaml_lose_nothing(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    record = Record(1, 2, key, value, tuple(headers))
    line = document_formatter("json")(PLACE, record)
    assert line.endswith(b"\n")
    assert b"\n" not in line[:-1]
    shown = json.loads(line)
    (in_yaml,) = yaml.safe_load_all(document_formatter("yaml")(PLACE, record))
    assert in_yaml == shown

    def payload(entry: object) -> bytes | None:
        if isinstance(entry, dict):
            return b64decode(entry["base64"])
        return None if entry is None else str(entry).encode()

    assert (payload(shown["key"]), payload(shown["value"])) == (key, value)
    assert [(name, payload(entry)) for name, entry in shown["headers"]] == headers
    assert (shown["topic"], shown["partition"], shown["offset"], shown["timestamp"]) == ("orders", 3, 1, 2)
