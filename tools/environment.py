"""Sets up .venv, step by step, and tells how far it is.

python3 -m tools.environment check   # what `make check` needs: linters and the type checker, neither Spark nor clients
python3 -m tools.environment demo    # what `make run` needs: Spark, and a Java for it
python3 -m tools.environment docs    # what `make docs` needs: mkdocs
python3 -m tools.environment dev     # what `make test` and `make types` need: both, and other Kafka clients

Runs from the root of the tree, with any Python 3.11 or later, without a package installed. What was asked of pip is
remembered in a stamp (``.venv/.check``, ``.demo``, ``.docs``, ``.ready``), so that a second run takes no time and a
pull installs only what it changed.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.steps import Steps, duration, megabytes, size_below

PYTHON_MIN = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"


@dataclass(frozen=True, slots=True)
class Purpose:
    extra: str
    """Of pyproject.toml."""
    stamp: str
    installed_mb: int
    """What .venv holds afterwards, about."""
    downloaded_mb: int
    peak_mb: int
    """Needed on the disk for a moment: unpacking and building Spark's package takes three times its size."""
    needs_java: bool = False


PURPOSES = {
    "check": Purpose("check", ".check", installed_mb=120, downloaded_mb=35, peak_mb=300),
    "demo": Purpose("spark", ".demo", installed_mb=850, downloaded_mb=560, peak_mb=2700, needs_java=True),
    "docs": Purpose("docs", ".docs", installed_mb=110, downloaded_mb=30, peak_mb=250),
    "dev": Purpose("dev", ".ready", installed_mb=1050, downloaded_mb=620, peak_mb=2900),
}
INCLUDED_IN = {"check": ("check", "dev"), "demo": ("demo", "dev"), "docs": ("docs",), "dev": ("dev",)}
"""The purposes whose packages contain those of the first."""


class SetupFailed(Exception):
    """The environment cannot be made; the message is one line."""


def main() -> int:
    if sys.version_info < PYTHON_MIN:
        version = sys.version.split()[0]
        print(f"this needs Python 3.11 or later, and {sys.executable} is {version}: make PYTHON=python3.11 ...")
        return 1
    if len(sys.argv) != 2 or sys.argv[1] not in PURPOSES:
        print(__doc__)
        return 2
    try:
        set_up(sys.argv[1])
    except SetupFailed as error:
        print(f"millbeck: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the next run continues here", file=sys.stderr)
        return 130
    return 0


def set_up(name: str) -> None:
    if is_set_up(name):
        return
    from tools.pip_install import InstallFailed, pip_install

    purpose = PURPOSES[name]
    _check_disk(purpose)
    if not any(_stamp(each).exists() for each in PURPOSES):
        size = f"about {purpose.downloaded_mb} MB to download, {purpose.installed_mb} MB installed"
        print(f"setting up {ENVIRONMENT.name}: {size}", flush=True)
    steps = Steps(4 if purpose.needs_java else 3)
    with steps.step("virtual environment", lambda: f"{megabytes(size_below([ENVIRONMENT]))} on disk"):
        _make_environment()
    try:
        pip_install(steps, "pip", ENVIRONMENT, ["--upgrade", "pip", "setuptools>=77"], progress="off")
        # Without build isolation, which would download a compiler for each package that is built, to throw it away.
        arguments = ["--no-build-isolation", "--editable", f"{ROOT}[{purpose.extra}]"]
        pip_install(steps, "packages", ENVIRONMENT, arguments)
    except InstallFailed as error:
        raise SetupFailed(f"the packages cannot be installed: {error}") from error
    if purpose.needs_java:
        _get_java(steps)
    _stamp(name).write_text(digest(name, (ROOT / "pyproject.toml").read_bytes()))
    print(f"ready after {duration(steps.seconds)}: {ENVIRONMENT.name} holds {megabytes(size_below([ENVIRONMENT]))}")
    print("millbeck runs its Python files from here; `make build` compiles the data path")


def digest(name: str, project: bytes) -> str:
    """Of what decides about the installed packages: the project's file without its tools' settings, and the Python."""
    import tomllib

    declared = tomllib.loads(project.decode())
    asked = [declared["project"], PURPOSES[name].extra, sys.version_info[:2], str(ROOT)]
    return hashlib.sha256(repr(asked).encode()).hexdigest()


def _stamp(name: str) -> Path:
    return ENVIRONMENT / PURPOSES[name].stamp


def is_set_up(name: str) -> bool:
    """Whether all that is asked for was installed, for this purpose or for one that includes it."""
    project = (ROOT / "pyproject.toml").read_bytes()
    return PYTHON.exists() and any(
        _stamp(each).exists() and _stamp(each).read_text() == digest(each, project) for each in INCLUDED_IN[name]
    )


def _check_disk(purpose: Purpose) -> None:
    there_mb = max((PURPOSES[each].peak_mb for each in PURPOSES if _stamp(each).exists()), default=0)
    needed_mb = purpose.peak_mb - there_mb
    free_mb = shutil.disk_usage(ROOT).free // 1_000_000
    if free_mb < needed_mb:
        raise SetupFailed(
            f"{ROOT} has {free_mb} MB free, and the installation needs {needed_mb} MB for a moment "
            f"({ENVIRONMENT.name} keeps {purpose.installed_mb} MB): free some, or clone to another disk"
        )


def _make_environment() -> None:
    if PYTHON.exists():
        return
    # Debian's Python comes without ensurepip, and then venv fails.
    attempts: Sequence[Sequence[Sequence[str]]] = [
        [["-m", "venv", str(ENVIRONMENT)]],
        [["-m", "virtualenv", "--quiet", str(ENVIRONMENT)]],
        [
            ["-m", "pip", "install", "--quiet", "--user", "virtualenv"],
            ["-m", "virtualenv", "--quiet", str(ENVIRONMENT)],
        ],
    ]
    for commands in attempts:
        if all(subprocess.run([sys.executable, *each], capture_output=True).returncode == 0 for each in commands):
            return
    raise SetupFailed(
        f"{sys.executable} can make no virtual environment: install its venv module (Debian: apt-get install "
        "python3-venv), or pip install virtualenv"
    )


def _get_java(steps: Steps) -> None:
    """Runs tools.java, which tells on standard error how far it is."""
    said = ""
    command = [str(PYTHON), "-m", "tools.java"]
    with steps.step("Java", lambda: said):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            said = line.strip()
        home = process.stdout.read().strip() if process.stdout is not None else ""
        if process.wait():
            raise SetupFailed(said)
        said = home


if __name__ == "__main__":
    sys.exit(main())
