"""A millbeck node whose event loop is timed turn by turn: ``python -m bench.turn_recorder REPORT millbeck-arguments…``.

A turn is what the loop does between two looks at its descriptors: their callbacks, timers, and steps of tasks. It is
timed at its borders, in the selector's poll, by the loop thread's own processor time and by the wall. On SIGUSR2 the
turns since the last time are written to REPORT. With ``BENCH_TURN_STACKS=1`` a timer samples the stack every
millisecond, and the report says where the long turns were; the figures themselves are then higher.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from array import array
from collections import Counter
from pathlib import Path
from time import monotonic, thread_time
from types import FrameType
from typing import Any, Final

from millbeck.cli.main import main
from millbeck.host.loop import HostLoop

LONG_SECONDS: Final = 0.005
SAMPLE_SECONDS: Final = 0.001
SAMPLES_STACKS: Final = os.environ.get("BENCH_TURN_STACKS") == "1"
STACK_DEPTH_MAX: Final = 40
LONGEST_KEPT: Final = 5


class TimedPoll:
    """Stands in for the selector's epoll: turns begin when a poll returns and end with the next one."""

    def __init__(self, epoll: Any, turns: IterationTimes) -> None:
        self._epoll = epoll
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._epoll, name)

    def poll(self, *arguments: Any) -> Any:
        self._turns.end()
        try:
            return self._epoll.poll(*arguments)
        finally:
            self._turns.begin()


class IterationTimes:
    def __init__(self, report: Path) -> None:
        self._report = report
        self._is_inside = False
        self._began_cpu = self._began_wall = 0.0
        self._cpu = array("d")
        self._wall = array("d")
        self._stacks: list[str] = []
        self._long: list[tuple[float, list[str]]] = []

    def begin(self) -> None:
        self._stacks.clear()
        self._began_wall, self._began_cpu = monotonic(), thread_time()
        self._is_inside = True

    def end(self) -> None:
        if not self._is_inside:
            return
        self._is_inside = False
        cpu = thread_time() - self._began_cpu
        self._cpu.append(cpu)
        self._wall.append(monotonic() - self._began_wall)
        if self._stacks and cpu >= LONG_SECONDS:
            self._long.append((cpu, list(self._stacks)))

    def sample(self, number: int, frame: FrameType | None) -> None:
        if self._is_inside:
            names: list[str] = []
            while frame is not None and len(names) < STACK_DEPTH_MAX:
                code = frame.f_code
                names.append(f"{os.path.basename(code.co_filename)}.{code.co_qualname}:{frame.f_lineno}")
                frame = frame.f_back
            self._stacks.append(" < ".join(names))

    def write(self, number: int, frame: FrameType | None) -> None:
        longest = sorted(self._long, reverse=True)[:LONGEST_KEPT]
        report = {
            "cpu_ms": [round(each * 1000, 3) for each in self._cpu],
            "wall_ms": [round(each * 1000, 3) for each in self._wall],
            "long": [(cpu * 1000, Counter(stacks).most_common()) for cpu, stacks in longest],
        }
        self._cpu, self._wall, self._long = array("d"), array("d"), []
        if SAMPLES_STACKS:
            # From the first report on: a start is not sampled.
            signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
        # The report is the bench's work, not the node's.
        self._is_inside = False
        unfinished = self._report.with_suffix(".tmp")
        unfinished.write_text(json.dumps(report))
        unfinished.rename(self._report)


def record(report: Path) -> None:
    """Time the turns of every loop that this process makes from now on."""
    turns = IterationTimes(report)
    make = HostLoop.__init__

    def make_timed(loop: HostLoop, **options: bool) -> None:
        make(loop, **options)
        selector: Any = loop._selector  # type: ignore[attr-defined]
        selector._epoll = TimedPoll(selector._epoll, turns)

    HostLoop.__init__ = make_timed  # type: ignore[method-assign,assignment]
    signal.signal(signal.SIGUSR2, turns.write)
    signal.signal(signal.SIGPROF, turns.sample)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
    sys.argv = ["millbeck", *sys.argv[2:]]
    main()
