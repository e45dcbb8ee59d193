"""Reset the offsets of one or several consumer groups: make plans, and carry them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from millbeck.cli.groups.positions import Move, NewPosition, for_group, reset_plan
from millbeck.cli.output import show_rows
from millbeck.cli.progress import progress, progress_text
from millbeck.cli.verbs import kafka_tool
from millbeck.kernel.ids import holds_batch_notes

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.errors import ApiError
    from millbeck.kernel.ids import TopicPartition


async def consumer_groups(admin: Admin) -> list[str]:
    """All groups of consumers, but not those in which exactly-once pipelines store their progress."""
    return [name for name in await admin.list_groups(types=("classic", "consumer")) if not holds_batch_notes(name)]


async def reset_plans(
    admin: Admin,
    groups: Sequence[str],
    places: Sequence[tuple[str, list[int] | None]],
    position: NewPosition,
    *,
    creates: bool,
) -> tuple[dict[str, dict[TopicPartition, Move]], list[str]]:
    """The plan of each group, and the problems of groups that cannot be reset; raises the problem of a single group."""
    plans: dict[str, dict[TopicPartition, Move]] = {}
    problems: list[str] = []
    is_only = len(groups) == 1

    def shown(seconds: float) -> str:
        return progress_text(len(plans) + len(problems), len(groups), seconds, "groups")

    async with progress(shown):
        for name in groups:
            try:
                wanted = for_group(position, name, is_only=is_only)
                plans[name] = await reset_plan(admin, name, places, wanted, creates=creates)
            except click.ClickException as error:
                if is_only:
                    raise
                problems.append(error.message)
    return plans, problems


def show_plans(plans: Mapping[str, Mapping[TopicPartition, Move]], output: str) -> None:
    rows = [
        {
            "group": name,
            "topic": partition.topic,
            "partition": partition.partition,
            "current_offset": move.current,
            "new_offset": move.new,
        }
        for name, plan in plans.items()
        for partition, move in plan.items()
    ]
    if kafka_tool() is not None:
        from millbeck.cli.kafka_tools.formats import NEW_OFFSETS, print_table

        print_table(rows, NEW_OFFSETS)
    else:
        show_rows(rows, output)


async def carry_out(admin: Admin, plans: Mapping[str, Mapping[TopicPartition, Move]]) -> None:
    from millbeck.cli.commands.topic import raise_failures
    from millbeck.client.admin.results import GroupOffset

    failed: dict[TopicPartition, ApiError] = {}
    for name, plan in plans.items():
        new_offsets = {partition: GroupOffset(offset=move.new) for partition, move in plan.items()}
        failed |= (await admin.alter_group_offsets(name, new_offsets)).failed
    raise_failures(failed)
