"""The Python blocks of docs/testing.md are the tests of a user, and pass."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
CONFTEST = """
import pytest
from millbeck.server.local.embedded import FAST_FAILOVER

@pytest.fixture(scope="session")
def kafka_settings():
    return FAST_FAILOVER
"""
BLOCK = re.compile(r"(?P<skipped><!-- not run: .*? -->\n)?```python\n(?P<code>.*?)```", re.DOTALL)


def test_the_blocks_of_the_page_pass(pytester: pytest.Pytester) -> None:
    blocks = [match["code"] for match in BLOCK.finditer(PAGE.read_text("utf-8")) if match["skipped"] is None]
    (conftest,) = (code for code in blocks if "def kafka_settings" in code)
    # The example of settings turns automatic creation off, which the others use.
    compile(conftest, "conftest.py", "exec")
    tests = [code for code in blocks if code is not conftest]
    for number, code in enumerate(tests):
        (pytester.path / f"test_block_{number}.py").write_text(code, encoding="utf-8")
    pytester.makeini("[pytest]\n")
    pytester.makeconftest(CONFTEST)
    pytester.runpytest_subprocess("--strict-markers", "-q").assert_outcomes(
        passed=sum(code.count("def test_") for code in tests)
    )
