"""One node that the tests here share; those that end it start their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millbeck.testing import Broker, broker


@pytest.fixture(scope="session")
def node() -> Iterator[Broker]:
    with broker(auto_create_topics_enable=False) as running:
        yield running
