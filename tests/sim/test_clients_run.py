"""The public API of the Python client on three nodes under faults. And the harness is not blind: mutants are caught."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.client.consumer.record_run import RecordRun
from millbeck.client.producer.partition_queue import PartitionQueue
from millbeck.simulation.runs.clients_run import ClientsPlan, ClientsRun

MUTANT_SEEDS = range(3)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_clients_keep_their_promises(client_seed: int) -> None:
    plan = ClientsPlan.drawn(client_seed)
    anomalies = ClientsRun(plan).run()
    assert not anomalies, f"make sim SEED={client_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = ClientsRun(ClientsPlan.drawn(3))
        run.run()
        digests.append(run.cluster.world.trace.digest())
    assert digests[0] == digests[1]


def commits_what_was_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordRun, "consumed_offset", property(lambda run: run.state.position))


def forgets_a_batch_that_has_to_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PartitionQueue, "put_back", lambda queue, batch: queue.in_flight.remove(batch))


@pytest.mark.parametrize("mutant", [commits_what_was_not_read, forgets_a_batch_that_has_to_be_sent_again])
def test_mutants_are_caught(monkeypatch: pytest.MonkeyPatch, mutant: Callable[[pytest.MonkeyPatch], None]) -> None:
    mutant(monkeypatch)
    assert any(ClientsRun(ClientsPlan.drawn(seed)).run() for seed in MUTANT_SEEDS)
