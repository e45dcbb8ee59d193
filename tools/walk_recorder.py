"""A node that notes the functions each request passes through; run by `walks` with the tree to measure on its path."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

from millbeck.testing.child import main

HANDLERS: Final = ("handle_produce", "handle_fetch")
SENDS: Final = "flush_replies"
GENERATED: Final = ("<listcomp>", "<genexpr>", "<lambda>", "<dictcomp>", "<setcomp>")


class Recorder:
    """A profile function that keeps the calls of each event of the loop in which a handler of `HANDLERS` ran."""

    def __init__(self) -> None:
        self.shortest: dict[str, list[tuple[str, str]]] = {}
        self._calls: list[tuple[str, str]] = []
        self._is_waiting = False  # a handler ran and its reply is not sent yet
        self._depth = 0
        self._files: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event not in ("call", "return"):
            return
        code = frame.f_code
        file = self._files.get(code)
        if file is None:
            file = self._files[code] = code.co_filename.rpartition("/millbeck/")[2] if _is_ours(code) else ""
        if not file:
            return
        if event == "call":
            if not self._depth and not self._is_waiting:
                self._calls = []
            self._depth += 1
            if code.co_name not in GENERATED:
                self._calls.append((file, code.co_name))
        elif self._depth:
            self._depth -= 1
            if not self._depth:
                self._note_if_answered()

    def _note_if_answered(self) -> None:
        functions = [function for _, function in self._calls]
        handler = next((name for name in HANDLERS if name in functions), None)
        self._is_waiting = handler is not None and SENDS not in functions
        if handler is not None and not self._is_waiting:
            shortest = self.shortest.get(handler)
            if shortest is None or len(self._calls) <= len(shortest):
                self.shortest[handler] = self._calls


def _is_ours(code: CodeType) -> bool:
    return "/millbeck/" in code.co_filename and "/millbeck/testing/" not in code.co_filename


def run_node() -> None:
    """A test's node, with every call noted: ``walk_recorder.py ORDER NOTES``."""
    notes = Path(sys.argv.pop())
    recorder = Recorder()
    sys.setprofile(recorder)
    try:
        main()
    finally:
        sys.setprofile(None)
        notes.write_text(json.dumps(recorder.shortest))


if __name__ == "__main__":
    run_node()
