"""The tests themselves: each asserts something, and those of pure packages neither sleep nor mock."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.tidy.conftest import Module

ASSERTING_PREFIXES = ("assert", "check", "expect", "verify", "raises", "warns", "fail", "run_state_machine_as_test")


def test_every_test_asserts_something(unit_tests: list[Module]) -> None:
    silent: list[str] = []
    for module in unit_tests:
        functions = [each for each in ast.walk(module.tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        asserting = {function.name for function in functions if _asserts(function, set())}
        silent.extend(
            f"{module.shown}:{function.lineno} {function.name}"
            for function in functions
            if function.name.startswith("test_") and not _asserts(function, asserting)
        )
    assert not silent, "\n".join(silent)


def test_tests_of_pure_packages_do_not_sleep(unit_tests: list[Module]) -> None:
    violations: list[str] = []
    for module in unit_tests:
        if not module.is_pure:
            continue
        violations.extend(
            f"{module.shown}:{node.lineno} sleeps"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and _called_name(node) == "sleep"
        )
    assert not violations, "\n".join(violations)


def test_tests_of_pure_packages_use_no_mocks(unit_tests: list[Module]) -> None:
    violations = [
        f"{module.shown}:{imported.line} imports {imported.name}"
        for module in unit_tests
        if module.is_pure
        for imported in module.imports
        if imported.name.startswith("unittest")
    ]
    assert not violations, "\n".join(violations)


def _asserts(function: ast.FunctionDef | ast.AsyncFunctionDef, asserting: set[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            name = _called_name(node)
            if name in asserting or name.lstrip("_").startswith(ASSERTING_PREFIXES):
                return True
            if any(keyword.arg == "check" and _is_true(keyword.value) for keyword in node.keywords):
                return True  # a subprocess that has to succeed
    return False


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""
