from __future__ import annotations

from collections.abc import Callable

import pytest

from millbeck.cli.commands.config import entry_row, is_changed
from millbeck.client.admin.results import ConfigEntry, ConfigSynonym

ENTRY = ConfigEntry(
    name="retention.ms",
    value="5",
    source=1,
    is_read_only=False,
    is_sensitive=False,
    synonyms=(ConfigSynonym(name="log.retention.ms", value="9", source=4),),
    documentation="how long",
)
SECRET = ConfigEntry(name="ssl.key.password", value=None, source=5, is_read_only=True, is_sensitive=True)


def test_a_row_says_where_the_value_comes_from() -> None:
    assert entry_row(ENTRY, with_synonyms=False, with_documentation=False) == {
        "name": "retention.ms",
        "value": "5",
        "source": "topic",
    }


def test_programs_get_synonyms_and_whoever_asks_the_documentation() -> None:
    row = entry_row(ENTRY, with_synonyms=True, with_documentation=True)
    assert row["synonyms"] == [{"name": "log.retention.ms", "value": "9", "source": "server file"}]
    assert row["documentation"] == "how long"


def test_secrets_are_hidden_and_defaults_are_no_changes() -> None:
    assert entry_row(SECRET, with_synonyms=False, with_documentation=False)["value"] == "<hidden>"
    assert is_changed(ENTRY)
    assert not is_changed(SECRET)


USAGE = {
    "nobody": (("config", "describe"), "name one entity"),
    "two of them": (("config", "describe", "--topic", "a", "--broker", "1"), "name one entity"),
    "a name alone": (("config", "describe", "--entity-name", "a"), "need --entity-type"),
    "default of a topic": (("config", "--describe", "--entity-type", "topics", "--entity-default"), "only brokers"),
    "an unknown type": (("config", "describe", "--entity-type", "cats"), "is not one of"),
    "nothing to change": (("config", "alter", "--topic", "a"), "nothing to change"),
    "all of them": (("config", "alter", "--entity-type", "topics", "--add-config", "a=b"), "name one entity"),
    "too many names": (("config", "describe", "--entity-type", "users", "--entity-default", "--user", "a"), "name one"),
    "more names than types": (("config", "describe", "--entity-name", "a", "--topic", "b"), "need --entity-type"),
    "an address and a user": (("config", "describe", "--ip", "::1", "--user", "a"), "name one entity"),
    "a quota of another type": (
        ("config", "alter", "--ip", "::1", "--add-config", "request_percentage=5"),
        "not a quota",
    ),
    "a quota that is none": (("config", "alter", "--user", "a", "--add-config", "no.such=5"), "not a quota of users"),
    "a quota without a number": (
        ("config", "alter", "--client", "a", "--add-config", "request_percentage=x"),
        "'x' is not",
    ),
    "a quota that is endless": (
        ("config", "alter", "--client", "a", "--add-config", "request_percentage=inf"),
        "'inf'",
    ),
    "a password for a client id": (
        ("config", "alter", "--client", "a", "--delete-config", "SCRAM-SHA-256"),
        "belong to one user",
    ),
    "a password for all": (("config", "alter", "--user-defaults", "--delete-config", "SCRAM-SHA-256"), "belong to one"),
    "both": (
        ("config", "alter", "--user", "a", "--delete-config", "SCRAM-SHA-256,request_percentage"),
        "one after the other",
    ),
    "no such file": (("config", "alter", "--topic", "a", "--add-config-file", "nowhere"), "No such file"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)
