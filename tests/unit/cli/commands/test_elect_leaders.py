from __future__ import annotations

from collections.abc import Callable

import pytest

USAGE = {
    "nothing": ((), "choose one of"),
    "two things": (("--topic", "t", "--partition", "0", "--all-topic-partitions"), "choose one of"),
    "a topic without a partition": (("--topic", "t"), "go together"),
    "a partition without a topic": (("--all-topic-partitions", "--partition", "0"), "go together"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails("elect-leaders", *arguments)
