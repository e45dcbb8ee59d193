from __future__ import annotations

import click
import pytest

from millbeck.cli.config_changes import changes_of, parse_settings
from millbeck.client.admin.results import ConfigChange, ConfigOperation

CASES = {
    "one": ("a=b", {"a": "b"}),
    "two": ("a=b,c=d", {"a": "b", "c": "d"}),
    "a list in brackets": ("a=[b,c],d=e", {"a": "b,c", "d": "e"}),
    "nested brackets": ("a=[x[1,2],y]", {"a": "x[1,2],y"}),
    "an equals sign in the value": ("a=b=c", {"a": "b=c"}),
    "empty value": ("a=", {"a": ""}),
    "blanks": (" a = b , c=d ", {"a": "b", "c": "d"}),
    "the last wins": ("a=1,a=2", {"a": "2"}),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_settings_in_kafkas_notation(text: str, expected: dict[str, str]) -> None:
    assert parse_settings(text) == expected


@pytest.mark.parametrize("text", ["a", "=b", "a=b,c"])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--add-config"):
        parse_settings(text)


def test_changes_set_and_delete() -> None:
    assert changes_of({"a": "1"}, ["b"]) == [
        ConfigChange(name="a", value="1"),
        ConfigChange(name="b", operation=ConfigOperation.DELETE),
    ]
