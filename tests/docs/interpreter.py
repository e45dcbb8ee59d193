"""Executes files of Python in one namespace: their paths come by standard input, and after each its outcome goes out.

The blocks of a page run in a process of their own, which ends with the page, and with it what they leave open.
"""

from __future__ import annotations

import ast
import asyncio
import sys
import traceback
from pathlib import Path

DONE = "\x1edone"
FAILED = "\x1efailed"
SECONDS_MAX = 300


def main() -> None:
    names: dict[str, object] = {"__name__": "__page__"}
    for line in sys.stdin:
        path = Path(line.rstrip("\n"))
        try:
            code = compile(path.read_text("utf-8"), str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            outcome = eval(code, names)
            if outcome is not None:
                asyncio.run(asyncio.wait_for(outcome, SECONDS_MAX))
        except Exception:
            traceback.print_exc(file=sys.stdout)
            print(FAILED, flush=True)
        else:
            print(DONE, flush=True)


if __name__ == "__main__":
    main()
