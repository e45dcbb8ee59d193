"""What a page says is compared with what happens, and a difference is named with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs import walkthrough as module
from tests.docs.pages import ROOT, Block, all_blocks, missing_line
from tests.docs.walkthrough import PageFailed, Walkthrough

PAGE = ROOT / "docs" / "sample.md"


@pytest.fixture
def walkthrough(tmp_path: Path) -> Iterator[Walkthrough]:
    with Walkthrough(tmp_path) as started:
        yield started


def block(language: str, text: str) -> Block:
    return Block(PAGE, 7, language, text, None)


def test_a_page_is_read_as_blocks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- before: $ mkdir x -->\n```console\n$ echo a \\\n    b\na b\n```\n\n"
        "<!-- not run: no time -->\n```python\nraise SystemExit\n```\n\n```ini\n# etc/x.ini\na = 1\n```\n"
    )
    before, console, python, file = all_blocks(page)
    assert [each.line for each in before.commands()] == ["mkdir x"]
    assert [(each.line, each.output) for each in console.commands()] == [("echo a \\\n    b", ("a b",))]
    assert (python.reason, python.is_code) == ("no time", True)
    assert (file.file_name, file.is_code) == ("etc/x.ini", True)


@pytest.mark.parametrize(
    ("shown", "output", "missing"),
    [
        (("a", "b"), "a\nx\nb\n", None),
        (("b", "a"), "a\nb\n", "a"),
        (("wrote … files",), "wrote 44 files\n", None),
        (("wrote … files",), "wrote 44 files to x\n", "wrote … files"),
        (("a  b",), "  a b\n", None),
    ],
)
def test_lines_shown_are_in_the_output_in_this_order(shown: tuple[str, ...], output: str, missing: str | None) -> None:
    assert missing_line(shown, output) == missing


def test_what_a_command_exports_and_makes_is_there_for_the_next(walkthrough: Walkthrough) -> None:
    walkthrough.run(block("ini", "# a.ini\nport = 1\n"))
    walkthrough.run(block("console", "$ mkdir x && cp a.ini x && cd x && export NAME=y\n"))
    walkthrough.run(block("console", "$ echo $NAME; cat a.ini\ny\nport = 1\n"))
    walkthrough.run(block("python", "n = 1"))
    walkthrough.run(block("python", "import asyncio\nawait asyncio.sleep(0)\nassert n == 1"))


def test_a_command_that_does_not_end_is_killed_with_its_children(
    walkthrough: Walkthrough, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMMAND_SECONDS_MAX", 0.5)
    with pytest.raises(PageFailed, match="does not end within"):
        walkthrough.run(block("console", "$ (sleep 1; touch here); true\n"))
    monkeypatch.setattr(module, "COMMAND_SECONDS_MAX", 60)
    walkthrough.run(block("console", "$ sleep 1; ls | wc -l\n0\n"))


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("console", "$ false\n"),
        ("console", "$ echo a\nb\n"),
        ("python", "raise ValueError('no')\n"),
        ("python", "def test_x():\n    assert False\n"),
    ],
)
def test_a_block_that_fails_is_named(walkthrough: Walkthrough, language: str, text: str) -> None:
    with pytest.raises(PageFailed, match=r"docs/sample\.md:7: "):
        walkthrough.run(block(language, text))
