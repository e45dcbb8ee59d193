"""Declared settings: values, errors in Kafka's words, answers of the REST interface."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.config.checks import all_of, at_least, between, non_empty_list, non_empty_text, one_of
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.errors import ConfigError

DEFINED = ConfigDef(
    ConfigKey(name="file", kind=STRING, check=non_empty_text(), importance=Importance.HIGH, doc="The file."),
    ConfigKey(name="batch", kind=INT, default=20, check=all_of(at_least(1), between(0, 50)), doc="How many."),
    ConfigKey(name="mode", kind=STRING, default="a", check=one_of("a", "b"), doc="The mode."),
    ConfigKey(name="names", kind=LIST, default=("x",), check=non_empty_list(), doc="Names."),
    ConfigKey(name="secret", kind=PASSWORD, default=None, check=None, doc="A secret."),
    ConfigKey(name="fast", kind=BOOLEAN, default=False, doc="Whether it is fast."),
)

PROBLEMS = {
    "missing": ({}, 'Missing required configuration "file" which has no default value.'),
    "empty": ({"file": ""}, "Invalid value  for configuration file: String must be non-empty"),
    "no number": ({"fast": "1"}, "Invalid value 1 for configuration fast: Expected value to be either true or false"),
    "too small": ({"batch": "0"}, "Invalid value 0 for configuration batch: Value must be at least 1"),
    "too large": ({"batch": "51"}, "Invalid value 51 for configuration batch: Value must be no more than 50"),
    "not of these": ({"mode": "c"}, "Invalid value c for configuration mode: String must be one of: a, b"),
    "empty list": ({"names": ""}, "Configuration 'names' must not be empty. Valid values include: any non-empty value"),
    "no boolean": (
        {"fast": "yes"},
        "Invalid value yes for configuration fast: Expected value to be either true or false",
    ),
}


@pytest.mark.parametrize(("settings", "message"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_wrong_setting_is_told_in_kafkas_words(settings: dict[str, str], message: str) -> None:
    given = settings if not settings or "file" in settings else {"file": "f", **settings}
    with pytest.raises(ConfigError) as caught:
        DEFINED.parse(given)
    assert str(caught.value) == message
    (wrong,) = [value for value in DEFINED.validate(given) if value.errors]
    assert wrong.errors == [message]


def test_values_and_defaults() -> None:
    values = DEFINED.parse({"file": " f ", "names": "a , b", "fast": "TRUE", "other": "x"})
    assert values == {"file": "f", "batch": 20, "mode": "a", "names": ("a", "b"), "secret": None, "fast": True}


def test_validation_shows_every_setting_and_no_secret() -> None:
    found = {value.name: value.description() for value in DEFINED.validate({"batch": "0", "mode": "c", "secret": "pw"})}
    assert list(found) == ["file", "batch", "mode", "names", "secret", "fast"]
    assert [name for name, each in found.items() if each["errors"]] == ["file", "batch", "mode"]
    assert found["secret"] == {
        "name": "secret",
        "value": "[hidden]",
        "recommended_values": [],
        "errors": [],
        "visible": True,
    }
    assert "pw" not in str(found)
    assert found["names"]["value"] == "x"


def test_a_declaration_as_the_rest_interface_shows_it() -> None:
    assert DEFINED["batch"].description() == {
        "name": "batch",
        "type": "INT",
        "required": False,
        "default_value": "20",
        "importance": "MEDIUM",
        "documentation": "How many.",
        "group": None,
        "width": "NONE",
        "display_name": "batch",
        "dependents": [],
        "order_in_group": -1,
    }
    assert DEFINED["file"].description()["default_value"] is None


def test_definitions_can_be_joined() -> None:
    joined = DEFINED.joined(
        [ConfigKey(name="mode", kind=INT, default=1, doc="Other."), ConfigKey(name="z", kind=INT, doc="Z.")]
    )
    assert [key.name for key in joined][-1] == "z"
    assert joined["mode"].kind is INT
    assert "z" not in DEFINED


def test_a_number_that_cannot_be_read_has_both_of_kafkas_errors() -> None:
    (batch,) = [value for value in DEFINED.validate({"file": "f", "batch": "x"}) if value.name == "batch"]
    assert batch.errors == [
        "Invalid value x for configuration batch: Not a number of type INT",
        "Invalid value null for configuration batch: Value must be non-null",
    ]
