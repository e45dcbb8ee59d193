"""``tools/docs_site.py``: links that lead out of docs are text on the site."""

from __future__ import annotations

import pytest

from tools.docs_site import without_links_to_source

CASES = {
    "a page": ("[a](cluster.md#x)", "operations.md", "[a](cluster.md#x)"),
    "a page from a folder": ("[a](../cluster.md)", "adr/README.md", "[a](../cluster.md)"),
    "another site": ("[a](https://kafka.apache.org/x)", "operations.md", "[a](https://kafka.apache.org/x)"),
    "the same page": ("[a](#x)", "operations.md", "[a](#x)"),
    "a source file": (
        "see [`Log`](../src/millbeck/storage/log.py).",
        "architecture.md",
        'see <abbr title="src/millbeck/storage/log.py">`Log`</abbr>.',
    ),
    "a source file from a folder": ("[a](../../bench)", "adr/0003-x.md", '<abbr title="bench">a</abbr>'),
    "in a code block": ("```\n[a](../bench)\n```\n", "operations.md", "```\n[a](../bench)\n```\n"),
}


@pytest.mark.parametrize(("text", "page", "expected"), CASES.values(), ids=CASES.keys())
def test_links_out_of_docs_are_text(text: str, page: str, expected: str) -> None:
    assert without_links_to_source(text, page) == expected
