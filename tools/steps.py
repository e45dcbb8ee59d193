"""The steps of a long job on the terminal: what is done, how large it is, and how far.

A terminal shows the current step in one line that is redrawn; elsewhere a step that goes on prints a line every ten
seconds, if it has come any further. A finished step leaves one line with its time.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REDRAW_SECONDS = 0.5
REPEAT_SECONDS = 10.0
_CLEAR_LINE = "\r\x1b[K"


class Steps:
    """Steps are numbered up to ``total``; ``seconds`` since the first one is what the whole job took."""

    def __init__(self, total: int, *, stream: IO[str] | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout
        self._is_terminal = self._stream.isatty()
        self._total = total
        self._number = 0
        self._began_s = time.monotonic()
        self._printed = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began_s

    @contextmanager
    def step(self, title: str, progress_text: Callable[[], str]) -> Iterator[None]:
        """Show ``title`` and ``progress_text()`` while the block runs; at the end, also the duration."""
        self._number += 1
        began_s = time.monotonic()
        name = f"[{self._number}/{self._total}] {title}"
        done = threading.Event()
        thread = threading.Thread(target=self._show, args=(name, progress_text, began_s, done), daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            done.set()
            thread.join()
            self._clear()
            raise
        done.set()
        thread.join()
        self._line(f"{_joined(name, progress_text())}  {duration(time.monotonic() - began_s)}", is_last=True)

    def _show(self, name: str, progress_text: Callable[[], str], began_s: float, done: threading.Event) -> None:
        next_s = began_s + (0 if self._is_terminal else REPEAT_SECONDS)
        while not done.wait(REDRAW_SECONDS if self._is_terminal else 0.1):
            now_s = time.monotonic()
            text = _joined(name, progress_text())
            if now_s >= next_s and (self._is_terminal or text != self._printed):
                self._printed = text
                next_s = now_s + (0 if self._is_terminal else REPEAT_SECONDS)
                self._line(f"{text}  {duration(now_s - began_s)}", is_last=False)

    def _line(self, text: str, *, is_last: bool) -> None:
        if self._is_terminal:
            width = shutil.get_terminal_size().columns - 1
            text = _CLEAR_LINE + (text if len(text) <= width else text[: width - 1] + "…")
        self._stream.write(text + ("\n" if is_last or not self._is_terminal else ""))
        self._stream.flush()

    def _clear(self) -> None:
        """Remove an unfinished step's line from the terminal, before an error is printed."""
        if self._is_terminal:
            self._stream.write(_CLEAR_LINE)
            self._stream.flush()


def _joined(name: str, detail: str) -> str:
    return f"{name}: {detail}" if detail else name


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def megabytes(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def size_below(directories: Iterable[Path]) -> int:
    """The bytes of all files in these directories; files that go away meanwhile do not count."""
    total = 0
    waiting = [str(directory) for directory in directories]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue
    return total
