from __future__ import annotations

import subprocess
import sys

import pytest

import millbeck.testing
from millbeck.testing import broker_process


def test_the_package_gives_the_broker() -> None:
    assert millbeck.testing.broker is broker_process.broker
    assert millbeck.testing.Broker is broker_process.Broker
    assert millbeck.testing.BrokerFailed is broker_process.BrokerFailed


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = millbeck.testing.nothing


def test_it_needs_no_pytest_and_loads_nothing_early() -> None:
    program = (
        "import sys; sys.modules['pytest'] = None\n"
        "import millbeck.testing\n"
        "assert 'subprocess' not in sys.modules\n"
        "millbeck.testing.broker\n"
        "assert 'millbeck.server' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
