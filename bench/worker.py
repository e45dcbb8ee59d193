"""Starts load processes on the client's core and collects their results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tools.peers import ROOT

RUN_TIMEOUT_S = 600


class LoadFailed(Exception):
    """A load process ended badly; the text is what it said."""


class Load:
    """One load process; `result` waits for its end."""

    def __init__(self, mode: str, *, core: int | None, module: str = "bench.load", **arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
        )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"mode": mode, **arguments}) + "\n")
        self._process.stdin.flush()

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != "ready":
            raise LoadFailed(self._process.communicate(timeout=30)[1])

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def result(self) -> dict[str, Any]:
        try:
            output, complaint = self._process.communicate(timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.stop()
            raise LoadFailed(f"no result in {RUN_TIMEOUT_S} s") from None
        if self._process.returncode != 0:
            raise LoadFailed(complaint[-2000:])
        answer: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
        return answer

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)


def run_load(mode: str, *, core: int | None, **arguments: Any) -> dict[str, Any]:
    return Load(mode, core=core, **arguments).result()
