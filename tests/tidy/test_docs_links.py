"""The pages name what exists: relative links and their headings, paths of the tree, dotted names, linked classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.tidy.conftest import Module

LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TREE_PATH = re.compile(r"(?<![\w./-])(?:src|docs|tests|tools|bench|nemesis|ops)/[\w./-]*\w")
ADR = re.compile(r"docs/adr/\d{4}")
"""How text refers to a decision: by its number alone."""
DOTTED_NAME = re.compile(r"(?<![\w./-])millbeck(?:\.\w+)+")
FILE_SUFFIXES = (".yml", ".json", ".toml")
CODE_NAME = re.compile(r"`(?!\w+\.py`)(\w+(?:\.\w+)*)`$")
"""A class, a function or an attribute of a class, at the end of a link's text."""


def test_pages_name_what_exists(root: Path, source: list[Module]) -> None:
    pages = [*sorted((root / "docs").glob("*.md")), root / "README.md", root / "CONTRIBUTING.md"]
    problems = [problem for page in pages for problem in problems_of(page, root, source)]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("[tactics](tactics.md)", False),
        ("[tactics](tactics.md#what-is-not-there-yet)", False),
        ("[tactics](tactics.md#what-was-there)", True),
        ("[tactics](tactic.md)", True),
        ("[Kafka](https://kafka.apache.org/#none)", False),
        ("see src/millbeck/storage/log.py.", False),
        ("see src/millbeck/storage/logs.py.", True),
        ("(docs/adr/0007)", False),
        ("(docs/adr/9999)", True),
        ("`millbeck.storage.log.Log.stage`", False),
        ("`millbeck.storage.log.Log.staged`", True),
        ("`millbeck.storage.logs`", True),
        ("`millbeck.testing.broker()`", False),
        ("`millbeck.plain.verify=scram`", False),
        ("`millbeck.plain.verified=scram`", True),
        ("[`Log`](../src/millbeck/storage/log.py)", False),
        ("[`Log.stage`](../src/millbeck/storage/log.py)", False),
        ("[`LogState.end_offset`](../src/millbeck/storage/log_state.py)", False),
        ("[`write_staged`](../src/millbeck/storage/log.py)", False),
        ("[`write_nothing`](../src/millbeck/storage/log.py)", True),
        ("[`Logs`](../src/millbeck/storage/log.py)", True),
        ("[`Log`](../src/millbeck/storage/segment.py)", True),
        ("[`storage/log.py`](../src/millbeck/storage/log.py)", False),
        ("[`storage/log.py` `Log`](../src/millbeck/storage/log.py)", False),
        ("[`storage/log.py` `Logs`](../src/millbeck/storage/log.py)", True),
    ],
)
def test_a_wrong_reference_is_found(text: str, is_wrong: bool, root: Path, source: list[Module]) -> None:
    problems = list(_problems_of_text(text, root / "docs" / "sample.md", root, _by_name(source)))
    assert len(problems) == is_wrong, problems


def problems_of(page: Path, root: Path, source: list[Module]) -> list[str]:
    shown = page.relative_to(root).as_posix()
    text = page.read_text(encoding="utf-8")
    return [f"{shown}: {problem}" for problem in _problems_of_text(text, page, root, _by_name(source))]


def _problems_of_text(text: str, page: Path, root: Path, modules: Mapping[str, Module]) -> Iterator[str]:
    for label, link in LINK.findall(text):
        if "://" not in link:
            yield from _problems_of_link(label, link, page, root, modules)
    for path in TREE_PATH.findall(LINK.sub(r"\1", text)):
        exists = any(root.glob(f"{path}-*")) if ADR.fullmatch(path) else (root / path).exists()
        if not exists:
            yield f"there is no {path}"
    for name in DOTTED_NAME.findall(text):
        is_defined = _is_defined(name.split("."), modules) or name in _settings(root) | _entry_point_groups(root)
        if not name.endswith(FILE_SUFFIXES) and not is_defined:
            yield f"there is no {name}"


@cache
def _settings(root: Path) -> frozenset[str]:
    """Settings of our own look like names of the package."""
    pages = (root / "docs" / "generated" / f"{name}.md" for name in ("configuration", "connectors"))
    return frozenset(name for page in pages for name in DOTTED_NAME.findall(page.read_text(encoding="utf-8")))


@cache
def _entry_point_groups(root: Path) -> frozenset[str]:
    """Groups of entry points look like names of the package, too."""
    connect = [root / "src/millbeck/pipeline/connect" / name for name in ("plugins.py", "connectors/declared.py")]
    sources = [*connect, *(root / "src/millbeck/server").rglob("*.py")]
    return frozenset(name for each in sources for name in re.findall(r'"(millbeck\.\w+)"', each.read_text("utf-8")))


def _problems_of_link(label: str, link: str, page: Path, root: Path, modules: Mapping[str, Module]) -> Iterator[str]:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(root):
        yield f"the link {link} leads nowhere"
        return
    if anchor and target.suffix == ".md" and anchor not in _anchors(target.read_text(encoding="utf-8")):
        yield f"{path} has no heading #{anchor}"
    code_name = CODE_NAME.search(label)
    if code_name is not None and target.suffix == ".py":
        module = next((each for each in modules.values() if each.path == target), None)
        if module is not None and not _names_something(module, code_name[1].split("."), modules):
            yield f"{path} defines no {code_name[1]}"


def _names_something(module: Module, names: Sequence[str], modules: Mapping[str, Module]) -> bool:
    """Whether a name is bound in the module; a method may be named without its class."""
    if _is_bound(module.tree.body, names, modules):
        return True
    functions = (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return len(names) == 1 and any(node.name == names[0] for node in functions)


def _anchors(text: str) -> set[str]:
    """Headings as GitHub's anchors have them."""
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in HEADING.findall(text)}


def _by_name(source: list[Module]) -> dict[str, Module]:
    return {module.name: module for module in source}


def _is_defined(parts: Sequence[str], modules: Mapping[str, Module]) -> bool:
    """Whether a dotted name is a module, or is bound in the longest of its prefixes that is one."""
    for count in range(len(parts), 0, -1):
        module = modules.get(".".join(parts[:count]))
        if module is not None:
            return _is_bound(module.tree.body, parts[count:], modules)
    return False


def _is_bound(body: Sequence[ast.stmt], names: Sequence[str], modules: Mapping[str, Module]) -> bool:
    if not names:
        return True
    for statement in body:
        if isinstance(statement, ast.If):
            if _is_bound([*statement.body, *statement.orelse], names, modules):
                return True
        elif isinstance(statement, ast.ClassDef) and statement.name == names[0]:
            return _is_bound(statement.body, names[1:], modules) or names[1:] in _instance_attributes(statement)
        elif isinstance(statement, ast.ImportFrom):
            if names[0] in [alias.name for alias in statement.names]:
                return _is_defined([*(statement.module or "").split("."), *names], modules)
        elif names[0] in _bound_by(statement) and len(names) == 1:
            return True
    return False


def _bound_by(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _instance_attributes(node: ast.ClassDef) -> list[list[str]]:
    return [
        [attribute.attr]
        for attribute in ast.walk(node)
        if isinstance(attribute, ast.Attribute)
        and isinstance(attribute.ctx, ast.Store)
        and isinstance(attribute.value, ast.Name)
        and attribute.value.id == "self"
    ]


def test_every_decision_has_a_number_of_its_own(root: Path) -> None:
    numbers = [path.name[:4] for path in (root / "docs" / "adr").glob("[0-9]*.md")]
    assert len(numbers) == len(set(numbers)), sorted(numbers)


def test_every_page_is_in_the_navigation_of_the_site(root: Path) -> None:
    text = (root / "mkdocs.yml").read_text(encoding="utf-8")
    named = re.findall(r": ([\w/-]+\.md)$", text, re.MULTILINE)
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    assert sorted(named) == sorted(page for page in pages if not re.match(r"adr/0", page))
