"""Java's grammar for property files, the environment's names, and precedence."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import (
    parse_properties,
    properties_text,
    setting_of_variable,
    settings_of_environment,
    settings_of_flags,
)

FILES: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "equals": ("a=1", {"a": "1"}),
    "colon": ("a:1", {"a": "1"}),
    "blank": ("a 1", {"a": "1"}),
    "blanks around": ("  a \t=\f 1 2 ", {"a": "1 2 "}),
    "only the first separator divides": ("a=b=c:d", {"a": "b=c:d"}),
    "separator after blank and no more": ("a = = b", {"a": "= b"}),
    "key alone": ("a\nb=\nc", {"a": "", "b": "", "c": ""}),
    "empty key": ("=x", {"": "x"}),
    "comments": ("# a=1\n! b=2\n   # c=3\nd=4 # not a comment", {"d": "4 # not a comment"}),
    "blank lines": ("\n \t\f\na=1\n\n", {"a": "1"}),
    "line ends": ("a=1\r\nb=2\rc=3\nd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
    "the last one wins": ("a=1\na=2", {"a": "2"}),
    "continuation": ("a=1,\\\n    2,\\\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
    "continued key": ("lo\\\n  ng=1", {"long": "1"}),
    "continuation into a hash": ("a=1\\\n# 2", {"a": "1# 2"}),
    "continuation over a blank line ends there": ("a=1\\\n\nb=2", {"a": "1", "b": "2"}),
    "continuation at the end of the file": ("a=1\\", {"a": "1"}),
    "an even number of backslashes does not continue": ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
    "three backslashes do": ("a=1\\\\\\\nb=2", {"a": "1\\b=2"}),
    "four do not": ("a=1\\\\\\\\\nb=2", {"a": "1\\\\", "b": "2"}),
    "a comment does not continue": ("# a\\\nb=2", {"b": "2"}),
    "control escapes": ("a=\\t\\n\\r\\f", {"a": "\t\n\r\f"}),
    "other escapes": ("a=\\q\\\\\\ \\:", {"a": "q\\ :"}),
    "escaped separators in the key": ("a\\=b\\:c\\ d=1", {"a=b:c d": "1"}),
    "escaped hash": ("\\#a=1", {"#a": "1"}),
    "unicode": ("a=\\u00e9\\u20AC", {"a": "é€"}),
    "surrogate pair": ("a=\\ud83d\\ude00", {"a": "😀"}),
    "windows path loses its backslashes": ("a=C:\\dir", {"a": "C:dir"}),
    "raw text beyond ASCII": ("größe=ß", {"größe": "ß"}),
}


@pytest.mark.parametrize(("text", "expected"), FILES.values(), ids=FILES.keys())
def test_file(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@pytest.mark.parametrize("escape", ["\\u12", "\\u12g4", "\\u", "\\ud83d", "\\ude00x"])
def test_malformed_unicode_names_the_line(escape: str) -> None:
    with pytest.raises(InvalidConfig, match="line 3"):
        parse_properties(f"a=1\n# comment\nb={escape}\nc=2")


def escaped(text: str, extra: str) -> str:
    """The text as Java would write it."""
    result = []
    for character in text:
        if character in extra + "\\":
            result.append("\\" + character)
        elif character.isascii() and character.isprintable():
            result.append(character)
        else:
            units = character.encode("utf-16-be")
            result.extend(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    return "".join(result)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(texts, texts, max_size=5))
@settings(max_examples=100)
def test_what_is_written_is_read_back(expected: dict[str, str]) -> None:
    lines = [f"{escaped(key, ' =:#!')}={escaped(value, ' ')}" for key, value in expected.items()]
    assert parse_properties("\n".join(lines)) == expected


@given(st.text(st.sampled_from("ab\\u0=: \t#!\n\rd8"), max_size=60))
@settings(max_examples=200)
def test_any_text_is_read_or_refused_with_one_error(text: str) -> None:
    try:
        parsed = parse_properties(text)
    except InvalidConfig:
        return
    assert all("\n" not in key for key in parsed)


VARIABLES = {
    "LOG_RETENTION_MS": "log.retention.ms",
    "LISTENER_NAME_MY__LISTENER_SSL": "listener.name.my_listener.ssl",
    "A___B_C": "a-b.c",
    "A____B": "a-.b",
    "NODE_ID": "node.id",
}


@pytest.mark.parametrize(("variable", "setting"), VARIABLES.items())
def test_variables_name_settings(variable: str, setting: str) -> None:
    assert setting_of_variable(variable) == setting


def test_environment_holds_settings_under_two_prefixes() -> None:
    environment = {
        "KAFKA_NODE_ID": "1",
        "KAFKA_CFG_NODE_ID": "2",
        "KAFKA_CFG_PROCESS_ROLES": "broker",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_": "nothing",
        "PATH": "x",
        "MY_KAFKA_X": "y",
        "KAFKA_EMPTY": "",
    }
    assert settings_of_environment(environment) == {"node.id": "1", "process.roles": "broker", "empty": ""}


def test_flags() -> None:
    assert settings_of_flags(["a=1", " b =x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for bad in ("a", "=1", ""):
        with pytest.raises(InvalidConfig, match="key=value"):
            settings_of_flags([bad])


@given(st.dictionaries(st.text(min_size=1), st.text()))
@example({"a b": " x=\\y\n", "#k": "  v "})
def test_a_file_that_is_written_reads_as_the_same_settings(settings: dict[str, str]) -> None:
    assert parse_properties(properties_text(settings)) == settings
