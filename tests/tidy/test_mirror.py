"""Tests mirror the packages: ``millbeck/wire`` has its tests in ``tests/unit/wire``, and the reverse."""

from __future__ import annotations

import ast
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.tidy.conftest import Module

DECLARATIONS = {
    "wire/messages/*": "message classes: all of them are checked together, against other codecs",
    "server/config/sections/*": "options: all of them are checked together, against the facts of Kafka's own",
}
"""Modules without a line of logic, and where their contents are tested. They must not hold a function."""

IMPLEMENTATIONS = ("host", "simulation/environment")
"""Implementations of the kernel's protocols: the suite in tests/contract that runs against all of them counts too."""

ON_SPARK = "pipeline"
"""What only describes Spark's queries can be tested with a Spark alone: the mirror may be in tests/spark."""


def test_every_package_has_its_tests(source: list[Module], root: Path) -> None:
    packages = {Path(_path_within(module)).parent for module in source if _needs_a_test(module)}
    missing = [package.as_posix() for package in sorted(packages) if not _has_tests(package, root)]
    assert not missing, "\n".join(missing)


def test_every_test_stands_beside_its_package(source: list[Module], unit_tests: list[Module], root: Path) -> None:
    packages = {Path(_path_within(module)).parent for module in source}
    orphans = [
        module.shown
        for module in unit_tests
        if module.path.name.startswith("test_")
        and module.path.relative_to(root / "tests" / "unit").parent not in packages
    ]
    assert not orphans, "\n".join(orphans)


def test_declarations_hold_no_logic(source: list[Module]) -> None:
    unused = dict(DECLARATIONS)
    violations: list[str] = []
    for module in source:
        pattern = _declared_by(module)
        if pattern is None:
            continue
        unused.pop(pattern, None)
        violations.extend(
            f"{module.shown}:{node.lineno} defines a function"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )
    assert not violations, "\n".join(violations)
    assert list(unused) == []


def _path_within(module: Module) -> str:
    """Without suffix, from the package's root: ``wire/codec``."""
    path = module.path.with_suffix("").as_posix()
    return path.split("/src/millbeck/")[1]


def _declared_by(module: Module) -> str | None:
    return next((pattern for pattern in DECLARATIONS if fnmatchcase(_path_within(module), pattern)), None)


def _needs_a_test(module: Module) -> bool:
    if _declared_by(module) is not None:
        return False
    return module.path.name != "__init__.py" or not _only_reexports(module.tree)


def _only_reexports(tree: ast.Module) -> bool:
    """Docstrings, imports and plain assignments: nothing in it can go wrong on its own."""
    return all(isinstance(node, ast.Expr | ast.Import | ast.ImportFrom | ast.Assign) for node in tree.body)


def _has_tests(package: Path, root: Path) -> bool:
    folders = [root / "tests" / "unit" / package]
    if package.as_posix() in IMPLEMENTATIONS:
        folders.append(root / "tests" / "contract")
    if package.parts[:1] == (ON_SPARK,):
        folders.append(root / "tests" / "spark" / package.relative_to(ON_SPARK))
    return any(any(folder.glob("test_*.py")) for folder in folders)
