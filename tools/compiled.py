"""The compiled record kernels of this source tree: build them in place, check them, remove them.

An extension beside a Python file wins over it, so an edited file would silently run its old self. Each build writes the
digests of sources and extensions into ``build/kernels.json``; `check` compares. No extensions at all is a valid state:
the Python files run then.

    python tools/compiled.py build | check | clean
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setuptools import Extension

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "millbeck" / "records" / "kernels"
BUILD = ROOT / "build"
RECORD = BUILD / "kernels.json"
LIBRARY = "millbeck_kernels"
"""mypyc puts all modules into one library of this name, with a small loader beside each Python file."""


def sources() -> list[Path]:
    return sorted(path for path in KERNELS.glob("*.py") if path.name != "__init__.py")


def built() -> list[Path]:
    """The extensions of this interpreter that lie in the tree."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    library = ROOT / "src" / f"{LIBRARY}__mypyc{suffix}"
    return [path for path in (*sorted(KERNELS.glob(f"*{suffix}")), library) if path.exists()]


def extensions() -> list[Extension]:
    """What setuptools compiles; raises ImportError without mypyc."""
    from mypyc.build import mypycify

    os.chdir(ROOT)
    paths = [str(path.relative_to(ROOT)) for path in sources()]
    compiled: list[Extension] = mypycify(paths, opt_level="3", debug_level="0", group_name=LIBRARY)
    return compiled


def remove(path: str | Path) -> None:
    Path(path).unlink(missing_ok=True)


def _digests(paths: list[Path]) -> dict[str, str]:
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def record_build() -> None:
    """Remember which sources the extensions now in the tree come from."""
    BUILD.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps({"sources": _digests(sources()), "extensions": _digests(built())}, indent=1) + "\n")


def problems() -> list[str]:
    """Why the extensions in the tree are not what the sources say; empty when they are, or when there are none."""
    there = built()
    if not there:
        return []
    if not RECORD.exists():
        return ["extensions exist, but nothing says what they were built from"]
    record = json.loads(RECORD.read_text())
    found = []
    for kind, digests in (("sources", _digests(sources())), ("extensions", _digests(there))):
        recorded = record[kind]
        changed = [path for path in sorted(recorded.keys() | digests.keys()) if recorded.get(path) != digests.get(path)]
        found += [f"{path} is not the one of the last build" for path in changed]
    return found


def build() -> int:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    # Not through setup(): that would want the setuptools that pyproject.toml asks for.
    command = build_ext(
        Distribution({"name": "millbeck", "ext_modules": extensions(), "package_dir": {"": str(ROOT / "src")}})
    )
    command.inplace = True
    command.build_temp = str(BUILD / "temp")
    command.ensure_finalized()
    command.run()
    record_build()
    print(f"compiled {len(sources())} kernels")
    return 0


def check() -> int:
    found = problems()
    for problem in found:
        print(f"stale: {problem}")
    if found:
        print("run: python tools/compiled.py build")
        return 1
    print(f"kernels: {'compiled and fresh' if built() else 'not compiled, Python files run'}")
    return 0


def clean() -> int:
    for path in built():
        remove(path)
    remove(RECORD)
    return 0


if __name__ == "__main__":
    commands = {"build": build, "check": check, "clean": clean}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]]())
