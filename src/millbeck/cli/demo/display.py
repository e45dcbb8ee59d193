"""Displays the demo's figures: redrawn in place on a terminal, otherwise as plain lines with the time."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from typing import TYPE_CHECKING, Final

import click

from millbeck.pipeline.demo.board import board, line, table

if TYPE_CHECKING:
    from millbeck.pipeline.demo.board import Figures

REDRAW_SECONDS: Final = 0.5
REPEAT_SECONDS: Final = 5.0


class Display:
    """Shows the figures from a separate thread, since the main thread waits while Spark starts."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._is_terminal = sys.stdout.isatty()
        self._height = 0
        self._last = ""
        self._table: list[str] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="display", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Show the final state and stop."""
        if self._done.is_set():
            return
        self._done.set()
        self._thread.join()
        self._show()
        self._height = 0

    def _run(self) -> None:
        while not self._done.wait(REDRAW_SECONDS if self._is_terminal else REPEAT_SECONDS):
            self._show()

    def _show(self) -> None:
        if self._is_terminal:
            self._draw(board(self._figures))
            return
        text = line(self._figures)
        if text != self._last:
            self._last = text
            click.echo(f"[{time.strftime('%H:%M:%S')}] {text}")
        rows = table(self._figures.so_far, self._figures.windows) if self._figures.has_results else []
        if rows != self._table:
            self._table = rows
            click.echo("\n".join(f"    {row}" for row in rows))

    def _draw(self, lines: list[str]) -> None:
        """Overwrite the previous output: move to its first line and clear the rest of the screen."""
        size = shutil.get_terminal_size()
        shown = [each[: size.columns - 1] for each in lines[: max(1, size.lines - 2)]]
        up = f"\x1b[{self._height}F" if self._height else ""
        sys.stdout.write(f"{up}\x1b[J" + "".join(f"{each}\n" for each in shown))
        sys.stdout.flush()
        self._height = len(shown)
