"""Notices that a callback holds an event loop, and says which one.

    stop = watch_loop(3.0, on_held)      # in the loop's thread; on_held(seconds, "handle (shop.py:12)") in the loop

A timer of the loop notes the time; a daemon thread, one for each loop that is watched, looks at the stack of the
loop's thread once the timer is late. When the loop runs again, the timer reports. Without a stack the whole process did
not run, as after a suspension.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final
from weakref import WeakKeyDictionary

_INTERVAL_S: Final = 0.25
_CO_COROUTINE: Final = 0x80
"""The flag of a coroutine's code (``inspect.CO_COROUTINE``; that module is slow to import)."""
_LOOP_FILES: Final = (f"{os.sep}asyncio{os.sep}", f"{os.sep}millbeck{os.sep}")

OnHeld = Callable[[float, str | None], None]

_watches: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopWatch] = WeakKeyDictionary()


def watch_loop(limit_s: float, on_held: OnHeld) -> Callable[[], None]:
    """Call ``on_held`` with seconds and callback after the running loop was held for longer; returns what stops it."""
    loop = asyncio.get_running_loop()
    watch = _watches.get(loop)
    if watch is None or not watch.is_running:
        watch = _watches[loop] = _LoopWatch(loop)
    return watch.add(limit_s, on_held)


class _LoopWatch:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread_id = threading.get_ident()
        self._listeners: dict[object, tuple[float, OnHeld]] = {}
        self._stopped = threading.Event()
        self._holder: str | None = None
        self._limit_s = 0.0
        self._noted_s = time.monotonic()
        self._timer = loop.call_later(_INTERVAL_S, self._note)
        threading.Thread(target=self._run, name="millbeck-loop-watch", daemon=True).start()

    @property
    def is_running(self) -> bool:
        return not self._stopped.is_set()

    def add(self, limit_s: float, on_held: OnHeld) -> Callable[[], None]:
        key = object()
        self._listeners[key] = limit_s, on_held
        self._limit_s = min(limit for limit, _ in self._listeners.values())
        return lambda: self._remove(key)

    def _remove(self, key: object) -> None:
        self._listeners.pop(key, None)
        if not self._listeners:
            self._stopped.set()
            self._timer.cancel()

    def _note(self) -> None:
        """Runs in the loop."""
        now_s = time.monotonic()
        held_s = now_s - self._noted_s - _INTERVAL_S
        holder, self._holder = self._holder, None
        self._noted_s = now_s
        self._timer = self._loop.call_later(_INTERVAL_S, self._note)
        for limit_s, on_held in list(self._listeners.values()):
            if held_s >= limit_s:
                on_held(held_s, holder)

    def _run(self) -> None:
        """Runs in the watching thread."""
        while not self._stopped.wait(min(_INTERVAL_S, self._limit_s / 2)) and not self._loop.is_closed():
            late_s = time.monotonic() - self._noted_s - _INTERVAL_S
            if late_s >= self._limit_s / 2 and self._holder is None:
                frame = sys._current_frames().get(self._thread_id)
                self._holder = None if frame is None else holder_of(frame)


def holder_of(innermost: FrameType) -> str | None:
    """The callback or coroutine that the loop runs, and where it is; None if the loop itself is waiting for events."""
    frames: list[FrameType] = []
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("_run", "_run_once", "select") and f"{os.sep}asyncio{os.sep}" in code.co_filename:
            break
        frames.append(frame)
        frame = frame.f_back
    if not frames or frames[0].f_code.co_name == "select":
        return None
    if frame is None:
        # Another kind of loop: the outermost coroutine is what it runs.
        coroutines = [each for each in frames if each.f_code.co_flags & _CO_COROUTINE]
        frames = frames[: frames.index(coroutines[-1]) + 1] if coroutines else frames
    own = [each for each in frames if not any(part in each.f_code.co_filename for part in _LOOP_FILES)]
    outermost = (own or frames)[-1]
    found = f"{outermost.f_code.co_qualname} ({_place(outermost)})"
    return found if (own or frames)[0] is outermost else f"{found}, which was at {_place((own or frames)[0])}"


def _place(frame: FrameType) -> str:
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
