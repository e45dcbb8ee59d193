"""A worker of ours that is sent the requests of the recording over HTTP, with its connectors at work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.testing.broker_process import broker
from tests.interop.connect.requests import Await, Request, all_steps
from tests.interop.connect.served_worker import SECONDS_MAX, ask, served
from tests.unit.pipeline.connect.rest.test_routes import comparable, recorded, without_descriptions
from tests.unit.pipeline.connect.rest.world import World

DIFFERENT = {
    "GET /connector-plugins": "connectors that are not Kafka's",
    "GET /connector-plugins?connectorsOnly=false": "connectors that are not Kafka's",
    "GET /connector-plugins/Cast$Value/config": "a name that Kafka does not know",
    "POST /connectors": "messages without the whole configuration, which may have passwords, and with our classes",
    "GET /connectors/source/status": "read before or after the deletion has reached it",
    "PATCH /connectors/sink/offsets": "brokers refuse offsets of a topic that is not there, in their own words",
    "GET /connectors/sink/offsets": "transactions have markers, which have offsets, too",
}


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    with broker() as node, served(node.bootstrap, **{"group.id": "connect"}):
        yield


def _wait(step: Await) -> None:
    ends_s = time.monotonic() + SECONDS_MAX
    while time.monotonic() < ends_s:
        status, _, found = ask(Request("GET", f"/connectors/{step.connector}/status"))
        states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])] if status == 200 else []
        if len(states) == step.tasks + 1 and set(states) == {step.state}:
            time.sleep(1.0)
            return
        time.sleep(0.1)
    pytest.fail(f"not reached: {step}; {found}")


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("worker")
def test_a_served_worker_answers_as_kafka_does() -> None:
    theirs = iter(recorded())
    differences: dict[str, Any] = {}
    compared = 0
    for step in all_steps():
        if isinstance(step, Await):
            _wait(step)
            continue
        method, path, _, status_code, location, body = next(theirs)
        status, ours_location, found = ask(step)
        if path.startswith("/admin/loggers"):
            continue
        compared += 1
        if status_code == 500:
            assert status in (200, 400, 404) or f"{method} {path}" in DIFFERENT, (method, path, found)
            continue
        if path.endswith("/validate"):
            # The unit tests compare it with Kafka's.
            alone = World().ask(method, path, step.body)
            is_same = step.is_text or (status, found) == (alone.status, alone.body)
        else:
            is_same = status == status_code and comparable(path, without_descriptions(found)) == comparable(path, body)
            is_same = is_same and ours_location == location
        if not is_same:
            differences[f"{method} {path}"] = (status, found, status_code, body)
    assert compared >= 120
    assert set(differences) <= set(DIFFERENT), differences
