"""The drivers are honest about what their clients lack, and the pins are the same everywhere."""

from __future__ import annotations

import tomllib

import pytest

from tests.interop.clients import DriverSession, NotSupported
from tools import peers

NOT_VERBS = {"timestamps", "acknowledged", "null headers"}


def test_what_a_client_is_said_to_lack_its_driver_refuses(driver: DriverSession) -> None:
    for verb in driver.client.lacks:
        if verb not in NOT_VERBS:
            with pytest.raises(NotSupported):
                driver.ask(verb)


def test_the_python_clients_are_the_pinned_ones() -> None:
    assert peers.python_pins_that_differ() == {}


def test_pyproject_pins_what_peers_toml_pins() -> None:
    project = tomllib.loads((peers.ROOT / "pyproject.toml").read_text())["project"]
    development = project["optional-dependencies"]["dev"]
    for name, version in peers.pins()["python"].items():
        assert f"{name}=={version}" in development
