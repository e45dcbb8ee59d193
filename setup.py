"""Builds the compiled modules as extensions where it can; their Python files serve where it cannot.

Without mypy, without a C compiler, or with ``MILLBECK_PURE=1`` the package installs all the same, in Python alone;
``millbeck.compiled.in_use()`` says which runs. An editable install runs the Python files until ``make build`` compiles
them. Everything else about the build stands in pyproject.toml.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools"))

import compiled

COMPILING_COMMANDS = ("bdist_wheel", "build", "build_ext", "install")
"""The other commands (metadata, source distributions, editable installs) would translate all modules for nothing."""


def _print_line(text: str) -> None:
    print(f"millbeck: {text}", file=sys.stderr)


def _extensions() -> list[Extension]:
    if os.environ.get("MILLBECK_PURE", "") not in ("", "0"):
        _print_line("MILLBECK_PURE is set: nothing is compiled")
        return []
    if "editable_wheel" in sys.argv:
        _print_line("an editable install runs the Python files; `make build` compiles them")
    if not any(command in sys.argv for command in COMPILING_COMMANDS):
        return []
    try:
        return compiled.extensions()
    except (ImportError, SystemExit) as error:
        # mypyc leaves through sys.exit when it cannot translate a module.
        _print_line(f"nothing is compiled, mypyc is missing or refused: {error}")
        return []


class BuildExtensions(build_ext):
    """All the extensions or none: half of them would not import."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            _print_line(f"nothing is compiled, the compiler failed: {error}")
            for extension in self.extensions:
                compiled.remove(self.get_ext_fullpath(extension.name))
            self.extensions = self.distribution.ext_modules = []
            return
        if self.extensions and self.inplace:
            compiled.record_build()


setup(ext_modules=_extensions(), cmdclass={"build_ext": BuildExtensions})
