"""Each example has a page, and the list has each example."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_each_example_has_a_page_of_ten_lines() -> None:
    folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
    listed = (EXAMPLES / "README.md").read_text()
    for folder in folders:
        assert f"({folder.name})" in listed, folder.name
        lines = (folder / "README.md").read_text().splitlines()
        assert 5 <= len(lines) <= 12, folder.name
