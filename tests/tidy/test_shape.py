"""The bounds of the tree's shape (`tools/shape.py`): sizes of files and folders, import cycles, constructors, names."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from tools import shape

SMALL_SHARE_MAX = 0.15
FOLDER_FILES_MAX = 40
FOLDER_LINES_MAX = 8000
CYCLE_MODULES_MAX = 5

RIDDLES = [
    "Errand",
    "Workplace",
    "Desk",
    "Outlet",
    "Surroundings",
    "Neighbourhood",
    "Turn",
    "Turns",
    "InSync",
    "Wanted",
    "Found",
    "Fetching",
    "Appending",
    "Logs",
    "Replication",
    "FetchLine",
    "LedShare",
    "Wish",
    "Burial",
    "bury",
    "Keeper",
    "Audience",
    "Mending",
    "RemoteEnds",
    "leader_said",
    "may_stand",
    "told_high_watermark",
    "LogWithDirt",
    "dirt_of",
    "Harm",
    "Manners",
    "plainly",
    "meanwhile",
    "say",
    "settle",
    "Duty",
    "forgive",
    "give_way",
    "let_go",
    "watermark_grew",
    "whereabouts",
    "wound",
]
"""Names that once stood for a worker's handle, a socket's stream, an ISR's state and the like: none comes back."""

RIDDLE_WORDS = ("burial", "dirt", "errand", "keeper", "mending", "neighbourhood", "outlet", "surroundings", "workplace")
"""Those that are no word of any longer name either."""


HOMONYMS = ("Member", "State", "Progress", "Found", "Entry", "Run", "Write", "Leader", "Limits")
"""Bare names that several classes had with different meanings: at most one class in `src` may have each."""


@pytest.fixture(scope="module")
def modules(root: Path) -> list[shape.Module]:
    return shape.modules_under(root, "src/millbeck", "millbeck")


def test_few_files_are_too_small_to_be_worth_a_file(modules: list[shape.Module]) -> None:
    sizes = [each.lines for each in modules if each.path.name != "__init__.py"]
    assert sum(size < shape.SMALL_LINES for size in sizes) <= SMALL_SHARE_MAX * len(sizes)


def test_no_folder_is_too_full(modules: list[shape.Module]) -> None:
    files: Counter[Path] = Counter()
    lines: Counter[Path] = Counter()
    for each in modules:
        files[each.path.parent] += 1
        lines[each.path.parent] += each.lines
    assert {folder for folder in files if files[folder] > FOLDER_FILES_MAX or lines[folder] > FOLDER_LINES_MAX} == set()


def test_import_cycles_are_small_with_imports_for_types(modules: list[shape.Module]) -> None:
    assert [group for group in shape.cycles(modules, for_types=True) if len(group) > CYCLE_MODULES_MAX] == []


def test_no_constructor_takes_too_many_arguments(modules: list[shape.Module]) -> None:
    assert [found for each in modules for found in each.wide_constructors()] == []


def test_no_riddle_is_the_name_of_a_class_or_function(root: Path) -> None:
    declared = re.compile(rf"^\s*(?:class|(?:async )?def) _*({'|'.join(RIDDLES)})\b", re.MULTILINE)
    found = [
        f"{path.relative_to(root)} {match[1]}"
        for folder in ("src", "tests", "bench", "nemesis", "tools")
        for path in sorted((root / folder).rglob("*.py"))
        for match in declared.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_no_riddle_is_a_word_of_a_name(root: Path) -> None:
    declared = re.compile(
        rf"^\s*(?:class|(?:async )?def) (\w*(?:{'|'.join(RIDDLE_WORDS)})\w*)", re.MULTILINE | re.IGNORECASE
    )
    found = [
        f"{path.relative_to(root)} {match[1]}"
        for folder in ("src", "tests", "bench", "nemesis", "tools")
        for path in sorted((root / folder).rglob("*.py"))
        for match in declared.finditer(path.read_text(encoding="utf-8"))
        if {*re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", match[1]).lower().split("_")} & {*RIDDLE_WORDS}
    ]
    assert not found, "\n".join(found)


def test_no_two_classes_share_a_bare_name_that_says_too_little(root: Path) -> None:
    declared = re.compile(rf"^ *class ({'|'.join(HOMONYMS)})\b", re.MULTILINE)
    named = Counter(
        name
        for path in sorted((root / "src" / "millbeck").rglob("*.py"))
        if "messages" not in path.parts
        for name in declared.findall(path.read_text(encoding="utf-8"))
    )
    assert {name: count for name, count in named.items() if count > 1} == {}
