"""Every API, by users with every kind of ACL: the answers are those of Apache Kafka with the same ACLs.

`authorizer.questions` has the requests, `authorizer.matrix` the users, and `authorizer.differences` what may differ.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.systems import SYSTEMS
from bench.systems.node import free_ports
from millbeck.server.requests.routes import ROUTES
from tests.interop.authorizer.differences import DIFFERENCES, differing
from tests.interop.authorizer.matrix import LISTENER, Matrix, api_keys, cases, properties

CASES_MIN = 1500
NOTHING_TO_ASK = {17, 18, 36}
"""Handshakes, and the versions of APIs: every client gets them."""
BROKERS_ONLY = {83, 84, 85, 86, 87}
"""Asked by brokers on their own listener; other clients are refused whatever their ACLs are."""


def answers(system: str, directory: Path) -> dict[str, Any]:
    asked = cases()
    node = SYSTEMS[system](directory, heap_mib=512)
    (port,) = free_ports(1)
    ports = {"PLAINTEXT": node.port, "CONTROLLER": node.controller_port, LISTENER: port}
    node.overrides = properties(ports, [case.user for case in asked])
    with node:
        return Matrix(port, asked).answers()


@pytest.mark.timeout(300)
def test_answers_are_kafkas(tmp_path: Path) -> None:
    mine = answers("millbeck", tmp_path / "millbeck")
    theirs = answers("apache-kafka", tmp_path / "apache-kafka")
    assert len(mine) >= CASES_MIN
    assert mine.keys() == theirs.keys()
    allowed = {(each.question, each.path) for each in DIFFERENCES}
    seen = set()
    unexpected = []
    for name, answer in mine.items():
        question = name.partition(" v")[0]
        for path in differing(answer, theirs[name]):
            seen.add((question, path))
            if (question, path) not in allowed:
                unexpected.append(f"{name}: {path}\n  {answer}\n  {theirs[name]}")
    assert unexpected == [], f"{len(unexpected)} answers differ:\n" + "\n".join(unexpected[:20])
    stale = [each for each in DIFFERENCES if each.is_certain and (each.question, each.path) not in seen]
    assert stale == [], "these differences are gone"


def test_every_api_of_clients_is_asked() -> None:
    served = {route.api_key for route in ROUTES}
    assert served - api_keys() == NOTHING_TO_ASK | BROKERS_ONLY
