from __future__ import annotations

from collections.abc import Callable

import pytest

from millbeck.cli.consume import Wanted
from millbeck.cli.start_positions import Start

USAGE = {
    "a pattern that is none": (("consume", "--include", "("), "--include: '(' is not a regular expression"),
    "no topic": (("consume",), "which topic?"),
    "two beginnings": (("consume", "a", "--from-beginning", "--offset", "5"), "exclude each other"),
    "no place": (("consume", "a", "--offset", "somewhere"), "is not earliest"),
    "a format nobody has": (("consume", "a", "-f", "%y"), "%y is not one of"),
    "a property nobody has": (("consume", "a", "--property", "print.cats=true"), "print.cats is not one of"),
    "a group is moved by reset": (("consume", "a", "--group", "g", "--offset", "5"), "millbeck group reset"),
    "no records": (("consume", "a", "--max-messages", "0"), "not in the range"),
    "an isolation nobody has": (("consume", "a", "--isolation-level", "serializable"), "is not one of"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)


def wanted(group: str | None, partitions: tuple[int, ...]) -> Wanted:
    return Wanted(
        topics=("a",),
        include=None,
        partitions=partitions,
        start=Start(),
        group=group,
        count_max=None,
        idle_ms_max=None,
        stops_at_end=False,
    )


def test_a_group_shares_partitions_unless_some_are_named() -> None:
    assert wanted("g", ()).is_member
    assert not wanted("g", (0,)).is_member
    assert not wanted(None, ()).is_member
