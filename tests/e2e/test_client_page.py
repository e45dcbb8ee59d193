"""The examples in the pages about the Python client run as they stand, against a broker on another port."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from millbeck.testing import broker

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = {"client.md": 4, "client-patterns.md": 7}


@pytest.mark.parametrize(("page", "count"), EXAMPLES.items(), ids=EXAMPLES)
def test_every_example_runs(page: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = DOCS / page
    examples = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == count
    with broker() as started:
        for example in examples:
            text = example.replace("127.0.0.1:9092", started.bootstrap)
            code = compile(text, str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            outcome: Any = eval(code, {})
            if outcome is not None:
                asyncio.run(asyncio.wait_for(outcome, 60))
