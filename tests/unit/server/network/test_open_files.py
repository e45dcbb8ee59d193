"""Clients, logs and nodes each have a share of the descriptors."""

from __future__ import annotations

import pytest

from millbeck.server.network.open_files import OpenFiles

CASES = {
    "a low limit": (200, 4096, 100, 50),
    "the usual one": (1024, 4096, 512, 352),
    "a high one": (65_536, 4096, 4096, 57_344),
    "fewer logs": (1024, 16, 16, 848),
    "next to nothing": (8, 16, 4, 2),
}


@pytest.mark.parametrize(("limit", "logs_max", "logs", "connections"), CASES.values(), ids=CASES)
def test_a_limit_is_shared_out(limit: int, logs_max: int, logs: int, connections: int) -> None:
    assert OpenFiles.shared_out(limit, logs_max) == OpenFiles(logs=logs, connections=connections)
