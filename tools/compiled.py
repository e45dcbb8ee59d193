"""The compiled modules of this source tree: build them in place, check them, remove them.

There are three groups, each one library: the record kernels, the kernels of columns, which alone need librt, the
compiler's runtime library, and the data path (listed in ``millbeck/compiled.py``).
An extension beside a Python file wins over it, so each build writes the digests of sources and extensions into
``build/kernels.json`` for `check` to compare, and the stamps of the files into ``build/compiled.stamps`` (data path)
and ``build/native.stamps`` (kernels), by which the package itself notices an edited file and runs the Python files. No
extensions at all is a valid state.

    python -m tools.compiled build | ensure | check | clean

`ensure` builds where there are no extensions, or stale ones. Without mypy or a C compiler it says so and succeeds: the
Python files run as well.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import sysconfig
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setuptools import Extension

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
RECORD = BUILD / "kernels.json"
KERNELS_LIBRARY = "millbeck_kernels"
COLUMNS_LIBRARY = "millbeck_columns"
PATH_LIBRARY = "millbeck_path"
"""mypyc puts all modules of a group into one library, with a small loader beside each Python file."""
FLAGS = ["-fvisibility=hidden", "-fno-plt"] if sys.platform == "linux" else []
"""Functions of a library call each other directly, and the interpreter's without a stub between."""


def _declaration() -> ModuleType:
    """``millbeck/compiled.py``, without importing the package it belongs to."""
    spec = spec_from_file_location("millbeck_compiled", ROOT / "src" / "millbeck" / "compiled.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kernel_sources() -> list[Path]:
    folder = ROOT / "src" / "millbeck" / "records" / "native"
    others = (folder / "__init__.py", *column_sources())
    return sorted(path for path in folder.glob("*.py") if path not in others)


def column_sources() -> list[Path]:
    folder = ROOT / "src" / "millbeck" / "records" / "native"
    return [folder / "columns.py", folder / "rows.py"]


def path_sources() -> list[Path]:
    return [ROOT / "src" / f"{name.replace('.', '/')}.py" for name in _declaration().MODULES]


def groups() -> dict[str, list[Path]]:
    return {KERNELS_LIBRARY: kernel_sources(), COLUMNS_LIBRARY: column_sources(), PATH_LIBRARY: path_sources()}


def _extensions_of(library: str, sources: list[Path]) -> list[Path]:
    """The extensions of a group for this interpreter that lie in the tree."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    candidates = [*(source.with_suffix(suffix) for source in sources), ROOT / "src" / f"{library}__mypyc{suffix}"]
    return [path for path in candidates if path.exists()]


def built() -> list[Path]:
    return [path for library, sources in groups().items() for path in _extensions_of(library, sources)]


def strangers() -> list[Path]:
    """Extensions for this interpreter that no group makes any more; Python would load them instead of their files."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    expected = set(built())
    return sorted(path for path in (ROOT / "src").rglob(f"*{suffix}") if path not in expected)


def extensions() -> list[Extension]:
    """What setuptools compiles; raises ImportError without mypyc."""
    from mypyc.build import mypycify

    os.chdir(ROOT)
    compiled: list[Extension] = []
    for library, sources in groups().items():
        paths = [str(path.relative_to(ROOT)) for path in sources]
        # -O3 makes the large group no faster, and its build half as long again.
        compiled += mypycify(
            paths,
            opt_level="2" if library == PATH_LIBRARY else "3",
            debug_level="0",
            group_name=library,
            target_dir=str(BUILD / library),
        )
    for extension in compiled:
        extension.extra_compile_args += FLAGS
    return compiled


def remove(path: str | Path) -> None:
    Path(path).unlink(missing_ok=True)


def _digests(paths: list[Path]) -> dict[str, str]:
    return {str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _sources() -> list[Path]:
    return [source for sources in groups().values() for source in sources]


def record_build() -> None:
    """Remember which sources the extensions now in the tree come from."""
    BUILD.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps({"sources": _digests(_sources()), "extensions": _digests(built())}, indent=1) + "\n")
    _write_stamps()


def _write_stamps() -> None:
    declaration = _declaration()
    _write_stamps_of(declaration.STAMPS, [PATH_LIBRARY])
    _write_stamps_of(declaration.NATIVE_STAMPS, [KERNELS_LIBRARY, COLUMNS_LIBRARY])


def _write_stamps_of(name: str, libraries: list[str]) -> None:
    """One line for each source and extension of these groups, and no file without extensions."""
    sources = [source for library in libraries for source in groups()[library]]
    extensions = [path for library in libraries for path in _extensions_of(library, groups()[library])]
    if not extensions:
        remove(ROOT / name)
        return
    stamp = _declaration().stamp
    lines = [f"{stamp(str(path))} {path.relative_to(ROOT).as_posix()}\n" for path in [*sources, *extensions]]
    (ROOT / name).write_text("".join(lines))


def problems() -> list[str]:
    """Why the extensions in the tree are not what the sources say; empty when they are, or when there are none."""
    there = built()
    left_over = [f"{path.relative_to(ROOT)} belongs to an older build" for path in strangers()]
    if not there or left_over:
        return left_over
    if not RECORD.exists():
        return ["extensions exist, but nothing says what they were built from"]
    record = json.loads(RECORD.read_text())
    found = [
        f"the group {library} is not compiled, and another is"
        for library, sources in groups().items()
        if not _extensions_of(library, sources)
    ]
    for kind, digests in (("sources", _digests(_sources())), ("extensions", _digests(there))):
        recorded = record[kind]
        changed = [path for path in sorted(recorded.keys() | digests.keys()) if recorded.get(path) != digests.get(path)]
        found += [f"{path} is not the one of the last build" for path in changed]
    return found


def build() -> int:
    from setuptools import Distribution
    from setuptools.command.build_ext import build_ext

    from tools.steps import Steps, megabytes, size_below

    for path in strangers():
        remove(path)
    steps = Steps(2)
    temporary = BUILD / "temp"
    temporary.mkdir(parents=True, exist_ok=True)
    # The compiler writes its assembly there; its growth shows how far it is.
    os.environ["TMPDIR"] = str(temporary)
    with steps.step(
        f"translating {len(_sources())} modules to C", lambda: f"{megabytes(size_below([BUILD]))} in build"
    ):
        made = extensions()
    # Not through setup(): that would want the setuptools that pyproject.toml asks for.
    command = build_ext(Distribution({"name": "millbeck", "ext_modules": made, "package_dir": {"": str(ROOT / "src")}}))
    command.inplace = True
    command.build_temp = str(temporary)
    command.ensure_finalized()
    with steps.step("compiling", lambda: f"{megabytes(size_below([BUILD, *built()]))} in build"):
        command.run()
    record_build()
    kernel_count = len(kernel_sources()) + len(column_sources())
    print(f"compiled {kernel_count} kernels and {len(path_sources())} modules of the data path")
    return 0


def check() -> int:
    found = problems()
    for problem in found:
        print(f"stale: {problem}")
    if found:
        print("run: make build")
        return 1
    if built():
        # The same contents with other times, after a change of branches and back, are as good as new.
        _write_stamps()
    print(f"extensions: {'compiled and fresh' if built() else 'not compiled, Python files run'}")
    return 0


def ensure() -> int:
    if built() and not problems():
        return check()
    try:
        return build()
    except (Exception, SystemExit) as error:
        clean()
        print(f"not compiled, the Python files run: {error}")
        return 0


def clean() -> int:
    for path in [*built(), *strangers()]:
        remove(path)
    remove(RECORD)
    remove(ROOT / _declaration().STAMPS)
    remove(ROOT / _declaration().NATIVE_STAMPS)
    return 0


if __name__ == "__main__":
    commands = {"build": build, "ensure": ensure, "check": check, "clean": clean}
    if len(sys.argv) != 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]]())
