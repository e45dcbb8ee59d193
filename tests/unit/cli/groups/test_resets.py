"""Several groups are reset in one go: what cannot be reset is named, and the rest is done."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import pytest

from millbeck.cli.groups.positions import NewPosition
from millbeck.cli.groups.resets import carry_out, consumer_groups, reset_plans
from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import EARLIEST, GroupOffset
from millbeck.kernel.ids import TopicPartition
from tests.unit.cli.groups.test_positions import FakeAdmin

EARLIEST_POSITION = NewPosition(timestamp=EARLIEST)


class ManyGroups(FakeAdmin):
    """`busy` has members, `billing` and `mail` have none."""

    def __init__(self) -> None:
        super().__init__()
        self.altered: dict[str, list[int]] = {}

    async def list_groups(self, *, types: tuple[str, ...] = ()) -> dict[str, Any]:
        assert types == ("classic", "consumer")
        return dict.fromkeys(("billing", "busy", "mail", f"millbeck-{'0' * 24}"))

    async def describe_groups(self, groups: list[str]) -> Outcomes[str, Any]:
        self.state = "Stable" if groups == ["busy"] else "Empty"
        return await super().describe_groups(groups)

    async def alter_group_offsets(self, group: str, offsets: dict[TopicPartition, GroupOffset]) -> Outcomes[Any, Any]:
        self.altered[group] = [each.offset for each in offsets.values()]
        return Outcomes({})


def reset(admin: Any, groups: list[str]) -> list[str]:
    async def run() -> list[str]:
        plans, problems = await reset_plans(admin, groups, [("orders", None)], EARLIEST_POSITION, creates=False)
        await carry_out(admin, plans)
        return problems

    return asyncio.run(run())


def test_all_groups_are_those_of_consumers_without_the_notes_of_pipelines() -> None:
    admin: Any = ManyGroups()
    assert asyncio.run(consumer_groups(admin)) == ["billing", "busy", "mail"]


def test_a_group_that_cannot_be_reset_does_not_stop_the_others() -> None:
    admin = ManyGroups()
    problems = reset(admin, ["billing", "busy", "mail"])
    assert problems == ["group busy is Stable: stop its members before its offsets are reset"]
    assert admin.altered == {"billing": [10, 0], "mail": [10, 0]}


def test_a_single_group_that_cannot_be_reset_is_an_error() -> None:
    admin = ManyGroups()
    with pytest.raises(click.ClickException, match="group busy is Stable"):
        reset(admin, ["busy"])
    assert admin.altered == {}
