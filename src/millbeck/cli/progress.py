"""Show the progress of a long command on a terminal: one line on standard error that is overwritten."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

import click

FIRST_SECONDS: Final = 2.0
EVERY_SECONDS: Final = 1.0
_CLEAR_LINE: Final = "\r\x1b[K"


@asynccontextmanager
async def progress(text: Callable[[float], str]) -> AsyncIterator[None]:
    """Show ``text(seconds)`` at intervals while the block runs; nothing if it is fast, or without a terminal."""
    import asyncio

    if not sys.stderr.isatty():
        yield
        return
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    has_shown = False

    async def show() -> None:
        nonlocal has_shown
        await asyncio.sleep(FIRST_SECONDS)
        while True:
            has_shown = True
            click.echo(f"{_CLEAR_LINE}{text(loop.time() - began_s)}", nl=False, err=True)
            await asyncio.sleep(EVERY_SECONDS)

    task = loop.create_task(show())
    try:
        yield
    finally:
        task.cancel()
        if has_shown:
            click.echo(_CLEAR_LINE, nl=False, err=True)


@contextmanager
def progress_of_loop() -> Iterator[Callable[[Callable[[], str]], None]]:
    """The same for a loop that prints its results: it calls what the block gets, with the text, as often as it likes.

    Nothing is shown where the results go to the terminal too.
    """
    if sys.stdout.isatty() or not sys.stderr.isatty():
        yield lambda _: None
        return
    next_s = time.monotonic() + FIRST_SECONDS
    has_shown = False

    def show(text: Callable[[], str]) -> None:
        nonlocal next_s, has_shown
        now_s = time.monotonic()
        if now_s >= next_s:
            next_s, has_shown = now_s + EVERY_SECONDS, True
            click.echo(f"{_CLEAR_LINE}{text()}", nl=False, err=True)

    try:
        yield show
    finally:
        if has_shown:
            click.echo(_CLEAR_LINE, nl=False, err=True)


def progress_text(done: int, total: int | None, seconds: float, what: str) -> str:
    """A progress text such as ``1200 of 5000 records, 600/s``."""
    of_all = f" of {total}" if total is not None else ""
    return f"{done}{of_all} {what}, {done / seconds if seconds > 0 else 0:.0f}/s"
