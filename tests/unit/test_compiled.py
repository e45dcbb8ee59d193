"""Which form of the data path runs: the extensions where they exist and are fresh, the Python files where asked."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from millbeck import compiled

SCRIPT = """
import sys
from importlib import import_module
from millbeck import compiled
{before}
forms = {{compiled.is_extension(import_module(name)) for name in compiled.MODULES}}
print(compiled.in_use(), forms)
"""


def forms(*, pure: str = "", before: str = "") -> str:
    environment = {**os.environ, "MILLBECK_PURE": pure}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(before=before)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def are_built() -> bool:
    return os.path.exists(f"{compiled.SOURCE_TREE}/{compiled.STAMPS}") and not compiled.is_stale()


def trees() -> dict[str, ast.Module]:
    root = Path(compiled.__file__).parents[1]
    return {name: ast.parse((root / f"{name.replace('.', '/')}.py").read_text()) for name in compiled.MODULES}


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_every_module_exists() -> None:
    assert list(trees()) == sorted(compiled.MODULES)


def test_a_name_stands_for_one_kind_of_error_in_a_function() -> None:
    """mypyc gives a name the type of its first ``except``, and refuses an error of another compiled class."""
    made = {node.name for tree in trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    violations = []
    for module, tree in trees().items():
        for function in functions(tree):
            kinds: dict[str, set[str]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type:
                    kinds.setdefault(node.name, set()).add(ast.unparse(node.type))
            violations += [
                f"{module}.{function.name}: {name} is one of {sorted(types)}"
                for name, types in kinds.items()
                if len(types) > 1 and types & made
            ]
    assert violations == []


def test_what_was_set_to_none_is_not_looked_at_again_in_the_same_function() -> None:
    """mypy takes it for None still, whatever was called since; compiled, that is an error at run time."""
    violations = []
    for module, tree in trees().items():
        for function in functions(tree):
            emptied: dict[str, int] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is None:
                    for target in node.targets:
                        if isinstance(target, ast.Attribute) and ast.unparse(target).startswith("self."):
                            emptied.setdefault(ast.unparse(target), node.lineno)
            violations += [
                f"{module}.{function.name}:{node.lineno} reads {ast.unparse(node)}"
                for node in ast.walk(function)
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Load)
                and node.lineno > emptied.get(ast.unparse(node), sys.maxsize)
            ]
    assert violations == []


def test_slots_are_not_read() -> None:
    """A compiled class has none."""
    violations = [
        f"{module}:{node.lineno}"
        for module, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "__slots__"
    ]
    assert violations == []


def test_python_files_run_when_the_environment_asks() -> None:
    assert forms(pure="1") == "False {False}"


def test_python_files_run_when_the_process_asks() -> None:
    assert forms(before="compiled.use_sources()") == "False {False}"


def test_all_extensions_run_where_they_are_fresh() -> None:
    if not are_built():
        pytest.skip("the data path is not compiled here")
    assert forms() == "True {True}"


def test_asking_for_sources_too_late_is_an_error() -> None:
    if not are_built():
        pytest.skip("the data path is not compiled here")
    with pytest.raises(AssertionError, match="extensions are in use already"):
        forms(before="import millbeck.wire.varint; compiled.use_sources()")
