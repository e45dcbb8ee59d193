"""Metrics over HTTP: served while it lasts, and what cannot be served is named."""

from __future__ import annotations

from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from millbeck.kernel.metrics import CONTENT_TYPE, Registry
from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.metrics_server import ANYWHERE, OFF, address_of, served


def test_what_is_counted_is_served_until_the_end() -> None:
    registry = Registry()
    counted = registry.counter("millbeck_pipeline_rows_total", "Rows.").child()
    with served(ANYWHERE, registry) as address:
        assert address is not None
        counted.value += 7
        with urlopen(address, timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            assert "millbeck_pipeline_rows_total 7\n" in answer.read().decode()
        with pytest.raises(HTTPError, match="404"):
            urlopen(address.replace("/metrics", "/"), timeout=10)
        with pytest.raises(DefinitionError, match="cannot be served at"), served(address[7:-8], registry):
            pass
    with pytest.raises(URLError):
        urlopen(address, timeout=10)


def test_off_is_nowhere() -> None:
    with served(OFF, Registry()) as address:
        assert address is None


@pytest.mark.parametrize("setting", ["9405", "here", "h:x", ":5", "h:70000", "h:-1"])
def test_what_is_no_address_is_named(setting: str) -> None:
    with pytest.raises(DefinitionError, match="metrics must be 'off' or an address"):
        address_of(setting)
    assert address_of("[::1]:5") == ("::1", 5)
