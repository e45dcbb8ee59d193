"""The digest of a run."""

from __future__ import annotations

from millbeck.simulation.environment.trace import Trace


def test_equal_events_give_equal_digests_and_any_difference_another() -> None:
    def digest(*events: tuple[str | int | float | bytes, ...], at: float = 1.0) -> str:
        trace = Trace(lambda: at)
        for event in events:
            trace.add(*event)
        return trace.digest()

    base = digest(("read", 1, b"abc"), ("sync", "/a"))
    assert digest(("read", 1, b"abc"), ("sync", "/a")) == base
    others = {
        digest(("read", 1, b"abd"), ("sync", "/a")),
        digest(("sync", "/a"), ("read", 1, b"abc")),
        digest(("read", 1, b"abc"), ("sync", "/a"), at=2.0),
        digest(("read", 1, b"abc")),
    }
    assert len(others | {base}) == 5


def test_the_last_events_are_kept_for_a_report() -> None:
    trace = Trace(lambda: 0.5, kept_count=2)
    for number in range(5):
        trace.add("event", number)
    assert trace.recent() == ["0.500000 event 3", "0.500000 event 4"]
    assert trace.event_count == 5
