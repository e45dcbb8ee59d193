"""The code blocks of the documentation's pages.

- A ``console`` block has commands, each after ``$ ``, and below a command lines that its output has in this order;
  ``…`` in such a line stands for anything.
- A ``python`` block is executed; later blocks of the page see its names. One with tests is run by pytest.
- A block of any language whose first line is a comment with a file's name (``# orders.py``) is that file.
- ``<!-- before: $ command -->`` has commands that make what the next block takes for granted.
- ``<!-- not run: reason -->`` above a block says why it is not run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

CONSOLE = "console"
PYTHON = "python"
_BLOCK = re.compile(
    r"^(?:<!-- before: (?P<before>.*?) -->\n)?(?:<!-- not run: (?P<reason>.*?) -->\n)?"
    r"```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE_NAME = re.compile(r"# (?P<name>[\w/.-]+\.\w+)\n")
_PROMPT = "$ "


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    reason: str | None
    """Why it is not run."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file_name(self) -> str | None:
        found = _FILE_NAME.match(self.text)
        return None if found is None else found["name"]

    @property
    def has_commands(self) -> bool:
        return any(line.startswith(_PROMPT) for line in self.text.splitlines())

    @property
    def is_code(self) -> bool:
        return self.language in (CONSOLE, PYTHON) or self.file_name is not None

    def commands(self) -> list[Command]:
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith(_PROMPT):
                found.append((line.removeprefix(_PROMPT), []))
            elif found and found[-1][0].endswith("\\") and not found[-1][1]:
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            elif found and line.strip():
                found[-1][1].append(line)
            elif line.strip():
                raise ValueError(f"{self}: output without a command: {line}")
        return [Command(line, tuple(output)) for line, output in found]


def blocks_of(page: Path) -> list[Block]:
    """The blocks that are run, or that say why not."""
    return [block for block in all_blocks(page) if block.is_code]


def all_blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in _BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        if match["before"]:
            found.append(Block(page, line, CONSOLE, match["before"], None))
        found.append(Block(page, line, match["language"], match["text"], match["reason"]))
    return found


def missing_line(shown: tuple[str, ...], output: str) -> str | None:
    """The first of the lines shown that the output does not have, in this order; spaces between words do not count."""
    rest = iter([" ".join(line.split()) for line in output.splitlines()])
    for line in shown:
        pattern = re.compile(".*?".join(map(re.escape, " ".join(line.split()).split("…"))))
        if not any(pattern.fullmatch(each) for each in rest):
            return line
    return None
