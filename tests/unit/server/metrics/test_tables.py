from __future__ import annotations

from millbeck.kernel.metrics import Registry
from millbeck.server.metrics.tables import declare_single


def test_totals_are_counters_and_everything_is_read_when_asked_for() -> None:
    registry = Registry()
    numbers = {"a": 1, "b_total": 2}
    declare_single(
        registry,
        "some_",
        (("a", "First.", lambda: numbers["a"]), ("b_total", "Second.", lambda: numbers["b_total"])),
    )
    numbers["a"] = 7
    numbers["b_total"] = 9
    text = registry.render()
    assert "# TYPE some_a gauge\nsome_a 7\n" in text
    assert "# TYPE some_b_total counter\nsome_b_total 9\n" in text
