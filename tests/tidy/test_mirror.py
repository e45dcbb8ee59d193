"""Tests mirror the source: ``millbeck/wire/codec.py`` has ``tests/unit/wire/test_codec.py``, and the reverse."""

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

IMPLEMENTATIONS = ("host", "testing/sim")
"""Implementations of the kernel's protocols: the suite in tests/contract that runs against all of them counts too."""

ON_SPARK = "pipeline"
"""What only describes Spark's queries can be tested with a Spark alone: the mirror may be in tests/spark."""


def test_every_module_has_its_test(source: list[Module], root: Path) -> None:
    missing = [
        _mirrors_of(module, root)[0].relative_to(root).as_posix()
        for module in source
        if _needs_a_test(module) and not any(mirror.is_file() for mirror in _mirrors_of(module, root))
    ]
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


def _mirrors_of(module: Module, root: Path) -> list[Path]:
    within = Path(_path_within(module))
    name = within.parent.name if within.name == "__init__" else within.name.removeprefix("_")
    mirrors = [root / "tests" / "unit" / within.parent / f"test_{name}.py"]
    if within.parent.as_posix() in IMPLEMENTATIONS:
        mirrors.append(root / "tests" / "contract" / f"test_{name}.py")
    if within.parts[0] == ON_SPARK:
        mirrors.append(root / "tests" / "spark" / within.relative_to(ON_SPARK).parent / f"test_{name}.py")
    return mirrors
