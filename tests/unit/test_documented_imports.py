"""What README and docs tell users to import can be imported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
IMPORT = re.compile(r"^\s*((?:from|import) millbeck[\w. ]*(?:import (?:\([^)]*\)|[^#\n]+))?)", re.MULTILINE)
IN_A_SENTENCE = re.compile(r"`((?:from|import) millbeck[^`\n]*)`")


def documented() -> dict[str, str]:
    """Each import statement, by the page it stands on first."""
    found: dict[str, str] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        statements = [match[1] for block in BLOCK.findall(text) for match in IMPORT.finditer(block)]
        for statement in (*statements, *IN_A_SENTENCE.findall(text)):
            found.setdefault(" ".join(statement.split()), page.name)
    return found


STATEMENTS = documented()


def test_the_pages_have_imports() -> None:
    assert "import millbeck.testing" in STATEMENTS
    assert any(statement.startswith("from millbeck.pipeline") for statement in STATEMENTS)


@pytest.mark.parametrize("statement", STATEMENTS, ids=[f"{page}: {text}" for text, page in STATEMENTS.items()])
def test_it_can_be_imported(statement: str) -> None:
    names: dict[str, object] = {}
    exec(statement, names)
    assert names.keys() - {"__builtins__"}
