"""Runs pip and tells how far it is: the package, its size, what is downloaded and what is written.

pip reports downloads itself (``--progress-bar raw``). It says nothing while it unpacks, builds and installs, so the
files that it writes then are counted: its temporary files are kept in a directory of their own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from tools.steps import Steps, megabytes, size_below

ERROR_LINES_KEPT = 200
_COLLECTING = re.compile(r"Collecting ([A-Za-z0-9._-]+)")
_DOWNLOADING = re.compile(r"\s*(?:Downloading|Using cached) (\S+)(?: \((.+)\))?")
_FILE = re.compile(r"(?:.*/)?([A-Za-z0-9._]+?)-([0-9][A-Za-z0-9.]*?)(?:-|\.tar|\.zip)")
_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_STEP = re.compile(r"\s*(Building wheel for|Building editable for|Preparing \S*\s?metadata)\s?(\S*)")
_REASONS = (
    ("No space left on device", "the disk is full"),
    ("Name or service not known", "there is no network, or no package index"),
    ("Temporary failure in name resolution", "there is no network, or no package index"),
    ("NewConnectionError", "the package index cannot be reached: check the network, or PIP_INDEX_URL"),
    ("Connection refused", "the package index cannot be reached: check the network, or PIP_INDEX_URL"),
    ("Read timed out", "the package index does not answer: check the network, or try again"),
    ("Could not find a version", "the package index has no version that fits this Python and this system"),
    ("CERTIFICATE_VERIFY_FAILED", "the package index's certificate is not trusted: set PIP_CERT"),
)


class InstallFailed(Exception):
    """pip failed; the message is one line with the reason."""


class PipOutput:
    """What pip's lines say about how far it is."""

    def __init__(self) -> None:
        self._phase = "starting pip"
        self._package = ""
        self._is_writing = False
        self._found: set[str] = set()
        self._before_bytes = 0
        self._file_bytes = 0
        self._file_bytes_all = 0

    @property
    def downloaded_bytes(self) -> int:
        return self._before_bytes + self._file_bytes

    def feed(self, line: str) -> None:
        if found := _PROGRESS.match(line):
            self._file_bytes, self._file_bytes_all = int(found[1]), int(found[2])
            return
        if found := _COLLECTING.match(line):
            self._next_file()
            self._package = found[1]
            self._found.add(found[1])
            self._begin(f"looking for {found[1]}")
        elif found := _DOWNLOADING.match(line):
            self._next_file()
            name = _FILE.match(found[1])
            self._package = name[1] if name else found[1]
            verb = "downloading" if "Downloading" in line else "from pip's cache:"
            self._begin(
                f"{verb} {name[1] + ' ' + name[2] if name else found[1]}" + (f" ({found[2]})" if found[2] else "")
            )
        elif found := _STEP.match(line):
            self._next_file()
            verb = "unpacking" if found[1].startswith("Preparing") else "building"
            package = found[2] if found[1].startswith("Building") else self._package
            self._begin(f"{verb} {package}", is_writing=True)
        elif line.startswith("Installing collected packages:"):
            self._next_file()
            self._begin(f"installing {line.count(',') + 1} packages", is_writing=True)

    def progress_text(self, written_bytes: int) -> str:
        """``written_bytes``: what lies on the disk by now."""
        if self._is_writing:
            return f"{self._phase}, {megabytes(written_bytes)} on disk"
        if self._file_bytes_all and self._file_bytes < self._file_bytes_all:
            phase = self._phase.partition(" (")[0]
            return f"{phase}, {self._file_bytes / 1e6:.0f} of {megabytes(self._file_bytes_all)}"
        return self._phase

    def _begin(self, phase: str, *, is_writing: bool = False) -> None:
        self._phase, self._is_writing = phase, is_writing

    def _next_file(self) -> None:
        self._before_bytes += self._file_bytes
        self._file_bytes = self._file_bytes_all = 0


def pip_install(
    steps: Steps, title: str, environment: Path, arguments: Sequence[str], *, progress: str = "raw"
) -> None:
    """Runs ``pip install`` in a virtual environment as one step; raises `InstallFailed`.

    ``progress`` is pip's kind of progress bar; before 24.1 it has no ``raw``.
    """
    output = PipOutput()
    temporary = environment / "tmp"
    temporary.mkdir(exist_ok=True)
    last: deque[str] = deque(maxlen=ERROR_LINES_KEPT)
    is_done = False

    def progress_text() -> str:
        if is_done:
            return f"{megabytes(output.downloaded_bytes)} downloaded" if output.downloaded_bytes else ""
        return output.progress_text(size_below([environment]))

    command = [
        *(str(environment / "bin" / "python"), "-m", "pip", "install"),
        *(
            "--disable-pip-version-check",
            "--no-input",
            "--no-compile",
            "--progress-bar",
            progress,
            *_cache_arguments(),
            *arguments,
        ),
    ]
    settings = {**os.environ, "TMPDIR": str(temporary.resolve()), "PYTHONUNBUFFERED": "1", "PIP_QUIET": "0"}
    try:
        with steps.step(title, progress_text):
            process = subprocess.Popen(
                command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
            )
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    last.append(line.rstrip())
                    output.feed(line)
                code = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
            if code:
                raise InstallFailed(reason(last))
            is_done = True
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def reason(lines: Sequence[str]) -> str:
    """One line for pip's failure: what a user can do about it, or pip's own error."""
    text = "\n".join(lines)
    for sign, meaning in _REASONS:
        if sign in text:
            return meaning
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return errors[0] if errors else (lines[-1] if lines else "pip said nothing")


def _cache_arguments() -> list[str]:
    """A cache that is there is used; a new one would only double what an installation writes."""
    home = os.environ.get("PIP_CACHE_DIR") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pip"
    )
    return [] if os.path.isdir(home) else ["--no-cache-dir"]
