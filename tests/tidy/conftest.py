"""The source tree as the tidy tests see it: every module parsed once."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from tools.shape import parsed

PURE = ("kernel", "wire", "records", "security", "raft", "metadata", "controller", "coordinator")
"""Packages that import no clock, randomness, file, socket, thread or event loop."""

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "millbeck"


@dataclass(frozen=True)
class Import:
    """One imported module. ``is_for_types`` tells that only the type checker sees it."""

    name: str
    line: int
    is_for_types: bool


@dataclass(frozen=True)
class Module:
    path: Path
    name: str
    """Dotted, such as ``millbeck.kernel.errors``; a package has its own name."""

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return parsed(self.path)

    @property
    def package(self) -> str:
        """The layer it belongs to: ``kernel``; "" for ``millbeck`` itself."""
        return self.name.split(".")[1] if "." in self.name else ""

    @property
    def is_pure(self) -> bool:
        """A pure package's module, or the test of one (``tests.unit.kernel.test_errors``)."""
        return self.name.removeprefix("tests.unit.").removeprefix("millbeck.").split(".")[0] in PURE

    @property
    def shown(self) -> str:
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    def is_under(self, prefix: str) -> bool:
        return self.name == prefix or self.name.startswith(prefix + ".")

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports(self.tree, is_for_types=False))

    def _imports(self, node: ast.AST, is_for_types: bool) -> Iterator[Import]:
        for child in _statements(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(alias.name, child.lineno, is_for_types)
            elif isinstance(child, ast.ImportFrom):
                base = self._base_of(child)
                # ``from millbeck import kernel`` imports a package just as ``import millbeck.kernel`` does.
                for alias in child.names:
                    yield Import(f"{base}.{alias.name}" if base == "millbeck" else base, child.lineno, is_for_types)
            elif isinstance(child, ast.If) and _is_type_checking(child.test):
                for statement in child.body:
                    yield from self._imports(ast.Module([statement], []), is_for_types=True)
                for statement in child.orelse:
                    yield from self._imports(ast.Module([statement], []), is_for_types)
            else:
                yield from self._imports(child, is_for_types)

    def _base_of(self, node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + (self.path.name == "__init__.py")]
        return ".".join([*kept, *([node.module] if node.module else [])])


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """What is directly in a block: imports are nowhere else, and most of a tree is expressions."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        children = getattr(node, field, ())
        if isinstance(children, list):
            yield from children


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def modules_under(directory: Path, top: str) -> list[Module]:
    modules = []
    for path in sorted(directory.rglob("*.py")):
        parts = [top, *path.relative_to(directory).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(path, name))
    return modules


@pytest.fixture
def make_module(tmp_path: Path) -> Callable[[str, str], Module]:
    """A module that does not exist, for tests of the checks themselves."""

    def make(name: str, text: str) -> Module:
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        return Module(path, name)

    return make


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def source() -> list[Module]:
    """Every module of the package."""
    return modules_under(SOURCE, "millbeck")


@pytest.fixture(scope="session")
def unit_tests() -> list[Module]:
    """Every module under tests/unit."""
    return modules_under(ROOT / "tests" / "unit", "tests.unit")
