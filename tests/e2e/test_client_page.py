"""The examples in docs/client.md run as they stand, against a broker on another port."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path
from typing import Any

from millbeck.testing import broker

PAGE = Path(__file__).resolve().parents[2] / "docs" / "client.md"


def test_every_example_runs() -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(examples) == 4
    with broker() as started:
        for example in examples:
            text = example.replace("127.0.0.1:9092", started.bootstrap)
            code = compile(text, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            outcome: Any = eval(code, {})
            if outcome is not None:
                asyncio.run(asyncio.wait_for(outcome, 60))
