"""A schedule of faults as data, so that it can be printed, replayed and shrunk without changing anything else.

A fault begins at ``at_s``, lasts ``seconds`` and is then repaired; faults may overlap. Its target is drawn with the
schedule, as a number that is resolved when the fault begins: ``target`` selects a node or a leader.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

CRASH: Final = "crash"
CRASH_LEADER: Final = "crash of a leader"
CRASH_CONTROLLER: Final = "crash of the controller"
CRASH_SEVERAL: Final = "crash of several"
CLEAN_RESTART: Final = "clean restart"
POWER_LOSS: Final = "power loss"
POWER_LOSS_OF_ALL: Final = "power loss of all"
PAUSE: Final = "pause"
PAUSE_LEADER: Final = "pause of a leader"
PARTITION: Final = "partition"
PARTITION_LEADER: Final = "partition of a leader"
PARTITION_CONTROLLER: Final = "partition of the controller"
ONE_WAY: Final = "one-way partition"
LINK: Final = "cut of a link"
SPLIT: Final = "split in two"
RESET: Final = "reset"
SLOW_LINK: Final = "slow link"
STALLS: Final = "stalls"
CLOCK_JUMP: Final = "clock jump"
SLOW_DISK: Final = "slow disk"
FULL_DISK: Final = "full disk"
FAILING_DISK: Final = "failing disk"
ROTTING_DISK: Final = "rotting disk"
EMPTY_DISK: Final = "empty disk"
BUSY_CONTROLLER: Final = "busy controller"
"""Makes a decision take that long; used only in explicit schedules."""

KINDS: Final = (
    CRASH,
    CRASH_LEADER,
    CRASH_CONTROLLER,
    CRASH_SEVERAL,
    CLEAN_RESTART,
    POWER_LOSS,
    POWER_LOSS_OF_ALL,
    PAUSE,
    PAUSE_LEADER,
    PARTITION,
    PARTITION_LEADER,
    PARTITION_CONTROLLER,
    ONE_WAY,
    LINK,
    SPLIT,
    RESET,
    SLOW_LINK,
    STALLS,
    CLOCK_JUMP,
    SLOW_DISK,
    FULL_DISK,
    FAILING_DISK,
    ROTTING_DISK,
    EMPTY_DISK,
)
SPARES_SESSIONS: Final = frozenset({SLOW_DISK, CLOCK_JUMP, BUSY_CONTROLLER})
"""Faults that slow decisions down, while every broker is running and reaches the active controller."""
DATA_LOSING: Final = frozenset({POWER_LOSS, FAILING_DISK, ROTTING_DISK, EMPTY_DISK})
"""Faults by which a node may lose records that it has acknowledged; the budget limits how many nodes at a time."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``target`` and ``value`` are numbers below 1, from which the details of the fault are derived."""

    at_s: float
    kind: str
    seconds: float
    target: float
    value: float

    def __str__(self) -> str:
        return f"Fault({self.at_s!r}, {self.kind!r}, {self.seconds!r}, {self.target!r}, {self.value!r})"


def draw_schedule(dice: random.Random, kinds: tuple[str, ...], *, count: int, over_s: float) -> tuple[Fault, ...]:
    """``count`` faults of these kinds within ``over_s`` seconds, ordered by start time."""
    faults = []
    for _ in range(count):
        kind = dice.choice(kinds)
        longest = 12.0 if dice.random() < 0.2 else 5.0
        faults.append(
            Fault(
                at_s=round(dice.random() * over_s, 3),
                kind=kind,
                seconds=round(0.1 + dice.random() * longest, 3),
                target=round(dice.random(), 6),
                value=round(dice.random(), 6),
            )
        )
    return tuple(sorted(faults, key=lambda fault: fault.at_s))
