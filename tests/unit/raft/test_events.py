from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import get_args

import pytest

from millbeck.raft import events
from millbeck.raft.events import Event, LogFlushed, ShutdownRequested


def test_events_are_values_that_a_trace_can_hold() -> None:
    flushed = LogFlushed(end_offset=5)
    assert flushed == LogFlushed(end_offset=5)
    assert repr(flushed) == "LogFlushed(end_offset=5)"
    assert ShutdownRequested() == ShutdownRequested()
    with pytest.raises(FrozenInstanceError):
        flushed.end_offset = 6  # type: ignore[misc]


def test_all_of_them_are_listed() -> None:
    declared = {each for each in vars(events).values() if isinstance(each, type) and each.__module__ == events.__name__}
    assert set(get_args(Event)) == declared
