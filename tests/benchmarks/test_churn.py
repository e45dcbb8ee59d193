"""What the churn run says of sockets and of its own results."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from bench import churn, sockets
from bench.churn_load import Trouble, paced


@pytest.fixture
def listening() -> Iterator[Any]:
    with socket.create_server(("127.0.0.1", 0), backlog=10) as server:
        yield server


def test_connections_that_nobody_accepts_are_counted(listening: socket.socket) -> None:
    port = listening.getsockname()[1]
    assert sockets.accept_queue(port) == 0
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        assert sockets.accept_queue(port) == 3


def test_a_trace_tells_both_ends(listening: socket.socket) -> None:
    address = listening.getsockname()
    with socket.create_connection(address) as client:
        accepted, _ = listening.accept()
        with accepted:
            client.sendall(b"four")
            assert sockets.both_ends(client.getsockname(), address) == (
                "client end established, 0 unsent, 0 unread; server end established, 0 unsent, 4 unread; accept queue 0"
            )


def test_handshakes_that_were_dropped_are_counted_by_name() -> None:
    assert set(sockets.overflow_counters()) == set(sockets.OVERFLOWS)


def test_steps_are_paced() -> None:
    assert len(list(paced(100, 0.05))) == 5


def outcome(**changes: Any) -> churn.Outcome:
    figures = {"quiet_ms": [1.0] * 100, "churn_ms": [20.0] * 100}
    given: dict[str, Any] = {**figures, "idle_bytes": 50, "after_bytes": 100, "opened": 7, **changes}
    return churn.Outcome(**given)


TROUBLE = Trouble()
TROUBLE.note("TimeoutError in connect", "from 127.0.1.1")


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({}, []),
        ({"errors": TROUBLE.counts}, [0]),
        ({"churn_ms": [22.0] * 100}, [1]),
        ({"after_bytes": 101}, [2]),
    ],
)
def test_each_goal_is_judged(changes: dict[str, Any], missed: list[int]) -> None:
    assert [number for number, row in enumerate(churn.rows(outcome(**changes))) if not row.met] == missed
