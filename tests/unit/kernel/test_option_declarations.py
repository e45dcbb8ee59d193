"""What one declaration knows, and what it refuses to be."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.option_declarations import REQUIRED, Importance, Scope, Synonym, Update, option
from millbeck.kernel.option_kinds import BOOLEAN, INT, LIST, PASSWORD, STRING, Secret
from millbeck.kernel.validators import at_least, one_of


def test_declaration_keeps_what_it_was_told() -> None:
    declared = option(
        "retention.ms",
        INT,
        5,
        doc="How long.",
        valid=at_least(-1),
        scope=Scope.TOPIC,
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        synonyms=[Synonym("log.retention.hours", 3600)],
        internal=True,
    )
    assert (declared.name, declared.kind, declared.default, declared.doc) == ("retention.ms", INT, 5, "How long.")
    assert (declared.scope, declared.update, declared.importance) == (Scope.TOPIC, Update.CLUSTER_WIDE, Importance.LOW)
    assert declared.synonyms == (Synonym("log.retention.hours", 3600),)
    assert (declared.internal, declared.sensitive, declared.default_text) == (True, False, "5")


def test_parse_refuses_what_the_type_refuses_and_names_the_setting() -> None:
    with pytest.raises(InvalidConfig) as caught:
        option("port", INT, 1, doc="A port.").parse("many")
    assert caught.value.message == "Invalid value many for configuration port: expected a whole number of 32 bits"


def test_parse_refuses_what_the_validator_refuses_and_says_what_is_allowed() -> None:
    declared = option("kind", STRING, "a", valid=one_of("a", "b"), doc="A kind.")
    assert declared.parse("b ") == "b"
    with pytest.raises(InvalidConfig) as caught:
        declared.parse("c")
    assert caught.value.message == "Invalid value c for configuration kind: the value must be one of a, b"


def test_convert_does_not_ask_the_validator() -> None:
    declared = option("size", INT, 9, valid=at_least(5), doc="A size.")
    assert declared.convert("1") == 1
    with pytest.raises(InvalidConfig):
        declared.convert("x")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InvalidConfig) as caught:
        option("flag", BOOLEAN, False, doc="A flag.").parse("y" * 10_000)
    assert len(caught.value.message) < 300


def test_passwords_never_show() -> None:
    declared = option("secret", PASSWORD, None, valid=one_of(Secret("hush")), doc="A secret.")
    assert declared.sensitive
    assert declared.text(Secret("hush")) == "[hidden]"
    assert option("secret", PASSWORD, Secret("x"), doc="A secret.").default_text is None
    with pytest.raises(InvalidConfig) as caught:
        declared.parse("other")
    assert "other" not in caught.value.message.split("configuration")[0]


def test_any_option_can_be_sensitive() -> None:
    declared = option("keys", LIST, ("a",), sensitive=True, doc="Keys.")
    assert declared.default_text is None


def test_defaults_as_text() -> None:
    assert option("flag", BOOLEAN, True, doc="A flag.").default_text == "true"
    assert option("name", STRING, None, doc="A name.").default_text is None
    assert option("id", INT, REQUIRED, doc="An id.").default_text is None


def test_an_option_needs_a_doc() -> None:
    with pytest.raises(AssertionError, match="no doc"):
        option("silent", INT, 1, doc="")


def test_a_default_must_be_valid_itself() -> None:
    with pytest.raises(AssertionError, match="default 1 of size is not at least 5"):
        option("size", INT, 1, valid=at_least(5), doc="A size.")


def test_repr_names_the_option() -> None:
    assert repr(option("size", INT, 1, doc="A size.")) == "<option size: int>"
