"""Throttling only delays; and the run is not blind: each mutant is caught."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller.client_quotas import CLIENT_ID
from millbeck.server.fetch.delayed_fetch import DelayedFetch
from millbeck.server.network.connection import Connection
from millbeck.server.quotas.client_quotas import ClientQuotas
from millbeck.server.quotas.limits import QuotaLimits
from millbeck.server.quotas.rates import WindowedRate
from millbeck.simulation.runs.quotas_run import THROTTLING, QuotasRun
from tests.unit.server.harness.method_patches import needs_sources


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("number", [1, 2])
def test_throttling_only_delays(number: int) -> None:
    anomalies = QuotasRun(number).run()
    assert not anomalies, f"seed {number}\n" + "\n".join(map(str, anomalies[:10]))


def _muted_connections_are_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Connection, "mute", lambda self, until_ms: None)
    patch.setattr(Connection, "unmute", lambda self: None)


def _a_quota_is_everybodys(patch: pytest.MonkeyPatch) -> None:
    original = QuotaLimits.follow

    def follow(self: QuotaLimits[Any], by_entity: Any) -> None:
        quotas = next(iter(by_entity.values()), None)
        original(self, {} if quotas is None else {((CLIENT_ID, None),): quotas})

    patch.setattr(QuotaLimits, "follow", follow)


def _clients_of_one_id_have_a_quota_each(patch: pytest.MonkeyPatch) -> None:
    made: list[WindowedRate] = []
    original = QuotaLimits._bucket

    def bucket(self: QuotaLimits[Any], owner: Any, now_ms: int) -> Any:
        made.append(self._make_bucket())
        return original(self, (*owner, len(made)), now_ms)

    patch.setattr(QuotaLimits, "_bucket", bucket)
    of = QuotaLimits._find
    patch.setattr(QuotaLimits, "of", lambda self, user, client_id, now_ms: of(self, user, client_id, now_ms))


def _throttled_sessions_advance(patch: pytest.MonkeyPatch) -> None:
    original = DelayedFetch._answer_later

    def answer(self: DelayedFetch, quotas: ClientQuotas, wait_ms: int) -> None:
        if self.session is not None:
            for partition in self.session._by_partition.values():
                partition.fetch_offset += 1
        original(self, quotas, wait_ms)

    patch.setattr(DelayedFetch, "_answer_later", answer)


MUTANTS = [
    _muted_connections_are_read,
    _a_quota_is_everybodys,
    _clients_of_one_id_have_a_quota_each,
    _throttled_sessions_advance,
]


@needs_sources
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_"))
def test_a_mutant_is_caught(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    assert any(anomaly.kind == THROTTLING for number in (1, 2) for anomaly in QuotasRun(number).run())
