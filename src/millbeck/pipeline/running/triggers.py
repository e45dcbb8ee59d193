"""The setting ``trigger``: the interval of batches, or ``real-time`` with the length of its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.errors import DefinitionError, TopologyError
from millbeck.pipeline.topology.windows import length_ms

REAL_TIME: Final = "real-time"
_DEFAULT_MS: Final = 60_000
_LEAST_MS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Trigger:
    is_real_time: bool
    interval_ms: int

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of Spark's ``trigger``."""
        return {"realTime" if self.is_real_time else "processingTime": f"{self.interval_ms} milliseconds"}

    @property
    def latency(self) -> str:
        """The expected latency, for users."""
        seconds = f"{self.interval_ms / 1000:g} s"
        if self.is_real_time:
            return f"milliseconds, tens of them with state; a second or two between two batches, every {seconds}"
        return f"tenths of a second more than the interval of batches, {seconds}"


def parse_trigger(text: str) -> Trigger:
    """Parse the setting; raises `DefinitionError`."""
    first, _, rest = text.strip().partition(" ")
    is_real_time = first == REAL_TIME
    said = rest.strip() if is_real_time else text
    try:
        interval_ms = _DEFAULT_MS if is_real_time and not said else length_ms(_spelled(said))
    except TopologyError as error:
        raise DefinitionError(f"trigger: {error}; or {REAL_TIME}, or {REAL_TIME} 30 seconds") from error
    if is_real_time and interval_ms < _LEAST_MS:
        raise DefinitionError(f"trigger: batches in real time last {_LEAST_MS // 1000} seconds at least, not {said}")
    return Trigger(is_real_time, interval_ms)


def _spelled(said: str) -> str:
    """``60s`` as ``60 seconds``."""
    return f"{said[:-1]} seconds" if said[-1:] == "s" and said[:-1].isdigit() else said
