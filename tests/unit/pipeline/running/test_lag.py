"""The lag of pipelines whose clusters are not known or do not answer; that of one that does: tests/spark."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.running import lag
from millbeck.pipeline.running.lag import Lags

STATUS: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "group": "revenue", "topics": ["orders"]}


@pytest.mark.parametrize("missing", ["bootstrap_servers", "group", "topics"])
def test_without_a_place_to_ask_it_is_unknown(missing: str) -> None:
    assert Lags().of({**STATUS, missing: None}) is None


def test_a_cluster_that_is_silent_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "PATIENCE_SECONDS", 0.05)
    lags = Lags()
    assert lags.of(STATUS) is None
    monkeypatch.setattr(lag, "Blocking", None)
    assert lags.of({**STATUS, "group": "other"}) is None
