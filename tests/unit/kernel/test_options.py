"""Sections and sets: typed values, and nothing declared twice."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    REQUIRED,
    STRING,
    ConfigLayers,
    OptionSet,
    Scope,
    Section,
    Synonym,
    at_least,
    option,
)


class LogOptions(Section):
    segment_bytes = option(
        "segment.bytes",
        INT,
        100,
        valid=at_least(14),
        scope=Scope.TOPIC,
        synonyms=[Synonym("log.segment.bytes")],
        doc="Size of a segment.",
    )
    preallocate = option("preallocate", BOOLEAN, False, scope=Scope.TOPIC, doc="Reserve the space at once.")


class SocketOptions(Section):
    listeners = option("listeners", LIST, ("PLAINTEXT://:9092",), doc="Where to listen.")
    rack = option("broker.rack", STRING, None, doc="Where the broker stands.")
    password = option("ssl.key.password", PASSWORD, None, doc="Opens the key.")


def test_class_gives_the_declaration_and_instance_the_value() -> None:
    assert LogOptions.segment_bytes.name == "segment.bytes"
    section = LogOptions.resolve(ConfigLayers(overrides={"segment.bytes": "200"}))
    # The annotations are the test for the type checker.
    size: int = section.segment_bytes
    preallocate: bool = section.preallocate
    rack: str | None = SocketOptions.of().rack
    assert (size, preallocate, rack) == (200, False, None)


def test_of_takes_texts_for_topic_and_broker_options_alike() -> None:
    assert LogOptions.of(segment_bytes="50").segment_bytes == 50
    assert SocketOptions.of(listeners="a,b").listeners == ("a", "b")
    with pytest.raises(InvalidConfig):
        LogOptions.of(segment_bytes="1")


def test_sections_never_change_but_can_be_replaced() -> None:
    section = LogOptions.of()
    with pytest.raises(AttributeError, match="is immutable"):
        section.segment_bytes = 5
    other = section.replace(segment_bytes=1)
    assert (other.segment_bytes, section.segment_bytes) == (1, 100)
    with pytest.raises(AssertionError, match="segment_size"):
        section.replace(segment_size=1)


def test_sections_compare_by_value_and_show_no_secrets() -> None:
    assert LogOptions.of() == LogOptions.of(segment_bytes="100") != LogOptions.of(segment_bytes="101")
    shown = repr(SocketOptions.of(password="hush"))
    assert "broker.rack=None" in shown
    assert "hush" not in shown


def test_a_missing_required_option_is_an_error() -> None:
    class Needy(Section):
        node_id = option("node.id", INT, REQUIRED, doc="Who.")

    with pytest.raises(InvalidConfig, match=r"node\.id"):
        Needy.of()
    assert Needy.of(node_id="3").node_id == 3


def test_a_name_cannot_be_declared_twice_in_a_section() -> None:
    with pytest.raises(AssertionError, match="twice"):

        class Twice(Section):
            one = option("same.name", INT, 1, doc="One.")
            two = option("same.name", INT, 2, doc="Two.")


def test_an_attribute_cannot_be_assigned_twice_in_a_section() -> None:
    with pytest.raises(AssertionError, match="size is declared twice"):

        class Twice(Section):
            size = option("first.size", INT, 1, doc="One.")
            size = option("second.size", INT, 2, doc="Two.")  # noqa: PIE794


def test_a_declaration_cannot_be_bound_twice() -> None:
    with pytest.raises((AssertionError, RuntimeError)):  # Python 3.11 wraps the assertion

        class Twice(Section):
            one = option("only.name", INT, 1, doc="One.")
            two = one


def test_a_name_cannot_be_declared_in_two_sections_of_a_set() -> None:
    class Other(Section):
        size = option("segment.bytes", INT, 1, doc="Again.")

    with pytest.raises(AssertionError, match=r"segment\.bytes is declared twice"):
        OptionSet(LogOptions, Other)


def test_set_finds_options_by_name() -> None:
    options = OptionSet(LogOptions, SocketOptions)
    assert [declared.name for declared in options] == [
        "segment.bytes",
        "preallocate",
        "listeners",
        "broker.rack",
        "ssl.key.password",
    ]
    assert len(options) == 5
    assert "segment.bytes" in options
    assert "segment.size" not in options
    assert options["preallocate"] is LogOptions.preallocate
    assert options.parse("segment.bytes", "14") == 14
    for name in ("segment.size", ""):
        with pytest.raises(InvalidConfig, match="Unknown configuration"):
            options.parse(name, "1")


def test_default_texts_leave_out_null_and_secret() -> None:
    assert OptionSet(LogOptions, SocketOptions).default_texts() == {
        "segment.bytes": "100",
        "preallocate": "false",
        "listeners": "PLAINTEXT://:9092",
    }


def test_a_derived_section_has_its_parents_options_too() -> None:
    class MoreLogOptions(LogOptions):
        extra = option("extra", INT, 1, scope=Scope.TOPIC, doc="More.")

    section = MoreLogOptions.of(segment_bytes="60", extra="2")
    assert (section.segment_bytes, section.extra) == (60, 2)
    assert [declared.name for declared in LogOptions.options] == ["segment.bytes", "preallocate"]
