"""The package's door: names are found, and only what is used is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

import millbeck.client

HEAVY = ("millbeck.client.producer", "millbeck.client.consumer", "millbeck.records", "millbeck.wire.api_keys", "ssl")


def loaded_after(statement: str) -> list[str]:
    program = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("name", millbeck.client.__all__)
def test_names_are_found(name: str) -> None:
    found = getattr(millbeck.client, name)
    assert getattr(found, "__name__", name) in (name, "tuple")


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="Nobody"):
        millbeck.client.Nobody  # noqa: B018


def test_a_producer_does_not_load_the_consumer() -> None:
    modules = loaded_after("from millbeck.client import Producer, CommittedOffset")
    assert [
        name for name in modules if name.startswith(("millbeck.client.consumer", "millbeck.client.telemetry"))
    ] == []


def test_an_admin_client_loads_nothing_it_does_not_use() -> None:
    modules = loaded_after("from millbeck.client import Admin")
    assert [name for name in HEAVY if name in modules] == ["ssl"] * ("ssl" in loaded_after("import asyncio"))
    # The family of what every client asks first, and no more.
    assert len([name for name in modules if name.startswith("millbeck.wire.messages.")]) == 1
