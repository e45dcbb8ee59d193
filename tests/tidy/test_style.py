"""Habits of the whole tree that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.tidy.conftest import Module

PLACES = ("src", "tests", "docs", "tools", "bench", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", ".ci")
SUFFIXES = (".py", ".md", ".toml", ".txt", ".java", ".go", ".js", ".json", ".yml", ".yaml", ".sh", "")
SKIPPED_DIRECTORIES = ("__pycache__", "node_modules", "build", "dist", "millbeck.egg-info")

EMPTY_NAMES = ("utils", "util", "helpers", "helper", "misc", "impl", "data", "info")
"""Words that say nothing: not for modules and classes."""
NAMED_BY_KAFKA = ("millbeck.wire.messages",)
"""Classes here carry the names of Kafka's schemas, good or bad."""
SHORT_NAMES = ("cfg", "mgr", "utils", "util", "helpers", "impl", "misc")
"""Not for functions, arguments and attributes either. Kafka's own abbreviations (isr, hwm, lso, leo) are fine."""

LEFTOVERS = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b")
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:work|home|Users|root|mnt|tmp)/(?!kafka-|kraft-)[\w.-]")
"""Kafka's own default directories are under /tmp; any other absolute path is somebody's machine."""
BANNER = re.compile(r"^\s*#\s*[-=*#~]{4,}")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[)")


def text_files(root: Path) -> Iterator[Path]:
    for place in PLACES:
        path = root / place
        candidates = [path] if path.is_file() else sorted(path.rglob("*")) if path.is_dir() else []
        for candidate in candidates:
            is_skipped = set(candidate.relative_to(root).parts) & set(SKIPPED_DIRECTORIES)
            if candidate.is_file() and candidate.suffix in SUFFIXES and not is_skipped:
                yield candidate


def lines_matching(root: Path, pattern: re.Pattern[str], only: str = "") -> list[str]:
    found: list[str] = []
    for path in text_files(root):
        if only and path.suffix != only:
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a binary fixture
        found.extend(
            f"{path.relative_to(root).as_posix()}:{number} {line.strip()[:80]}"
            for number, line in enumerate(text.splitlines(), start=1)
            if pattern.search(line)
        )
    return found


def test_nothing_is_left_for_later(root: Path) -> None:
    violations = lines_matching(root, LEFTOVERS)
    assert not violations, "\n".join(violations)


def test_no_path_of_a_machine(root: Path) -> None:
    violations = lines_matching(root, MACHINE_PATHS)
    assert not violations, "\n".join(violations)


def test_no_banners(root: Path) -> None:
    violations = lines_matching(root, BANNER, only=".py")
    assert not violations, "\n".join(violations)


def test_ignored_types_say_which_error(root: Path) -> None:
    violations = lines_matching(root, BARE_IGNORE, only=".py")
    assert not violations, "\n".join(violations)


def test_every_module_says_what_it_owns(source: list[Module]) -> None:
    violations = [module.shown for module in source if not ast.get_docstring(module.tree)]
    assert not violations, "\n".join(violations)


def test_print_belongs_to_the_command_line(source: list[Module]) -> None:
    violations = [
        f"{module.shown}:{node.lineno} prints"
        for module in source
        if module.package != "cli"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not violations, "\n".join(violations)


def test_modules_and_classes_have_names_that_say_something(source: list[Module]) -> None:
    violations: list[str] = []
    for module in source:
        own_name = module.name.rsplit(".", 1)[-1]
        if _words(own_name) & set(EMPTY_NAMES):
            violations.append(f"{module.shown} is called {own_name}")
        if any(module.is_under(prefix) for prefix in NAMED_BY_KAFKA):
            continue
        violations.extend(
            f"{module.shown}:{node.lineno} class {node.name}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef) and _words(node.name) & set(EMPTY_NAMES)
        )
    assert not violations, "\n".join(violations)


def test_names_are_spelled_out(source: list[Module]) -> None:
    violations: list[str] = []
    for module in source:
        for line, name in _given_names(module.tree):
            if _words(name) & set(SHORT_NAMES):
                violations.append(f"{module.shown}:{line} {name}")
    assert not violations, "\n".join(violations)


def _words(name: str) -> set[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return {word.lower() for word in spaced.split("_")}


def _given_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name the code itself gives: functions, arguments, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr
