from __future__ import annotations

from collections.abc import Callable


def test_a_broker_is_named_by_its_number(fails: Callable[..., str]) -> None:
    assert "--id" in fails("cluster", "unregister")
    assert "--id" in fails("cluster", "unregister", "--id", "-1")
