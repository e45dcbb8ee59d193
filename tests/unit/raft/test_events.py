from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from millbeck.raft.events import LogFlushed, ShutdownRequested, Started


def test_events_are_values_that_a_trace_can_hold() -> None:
    started = Started(log_end_offset=4, log_last_epoch=1)
    assert started == Started(log_end_offset=4, log_last_epoch=1)
    assert repr(LogFlushed(end_offset=5)) == "LogFlushed(end_offset=5)"
    assert ShutdownRequested() == ShutdownRequested()
    with pytest.raises(FrozenInstanceError):
        started.log_end_offset = 5  # type: ignore[misc]
