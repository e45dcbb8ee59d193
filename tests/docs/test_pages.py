"""Every console and Python block of the pages does what the page says, or tells why it is not run.

`make prove WHAT=docs` runs all of them; `make test` those of the pages that a newcomer reads first.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import CONSOLE, PAGES, ROOT, all_blocks, blocks_of
from tests.docs.walkthrough import Walkthrough, starts_a_node

READ_FIRST = ("README.md", "docs/client.md", "docs/client-patterns.md")
TESTED_ELSEWHERE = {
    "docs/testing.md": "tests/unit/testing/test_page.py: its settings are those of a whole session",
    "docs/security.md": "tests/e2e/test_security_page.py: its commands need users and certificates",
}


def _parameters() -> list[object]:
    names = [page.relative_to(ROOT).as_posix() for page in PAGES if blocks_of(page)]
    return [
        pytest.param(name, marks=[] if name in READ_FIRST else [pytest.mark.long])
        for name in names
        if name not in TESTED_ELSEWHERE
    ]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", _parameters())
def test_the_blocks_of_a_page_do_what_it_says(name: str, tmp_path: Path) -> None:
    blocks = blocks_of(ROOT / name)
    with Walkthrough(tmp_path) as walkthrough:
        if not starts_a_node(blocks):
            walkthrough.start_node()
        for block in blocks:
            walkthrough.run(block)
    if walkthrough.left_out:
        print(f"{name}, left out: {'; '.join(walkthrough.left_out)}")


def test_blocks_with_commands_are_console_blocks() -> None:
    wrong = [
        str(block) for page in PAGES for block in all_blocks(page) if block.has_commands != (block.language == CONSOLE)
    ]
    assert wrong == []


@pytest.mark.parametrize(("name", "test"), TESTED_ELSEWHERE.items())
def test_a_page_tested_elsewhere_has_its_test(name: str, test: str) -> None:
    assert (ROOT / name).exists()
    assert (ROOT / test.partition(":")[0]).exists()
