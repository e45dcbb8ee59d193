"""The output of kafka-streams-groups, which `millbeck.cli.commands.group` prints when it runs as that tool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.kafka_tools.formats import print_table

if TYPE_CHECKING:
    from millbeck.cli.groups.description import Described
    from millbeck.client.admin import Admin
    from millbeck.client.admin.streams_groups import StreamsGroupDescription, StreamsMemberDescription, Tasks

NAME: Final = "kafka-streams-groups"

OFFSETS: Final = {"GROUP": "group", "TOPIC": "topic", "PARTITION": "partition", "OFFSET-LAG": "lag"}
OFFSETS_VERBOSE: Final = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "CURRENT-OFFSET": "current_offset",
    "LEADER-EPOCH": "leader_epoch",
    "LOG-END-OFFSET": "log_end_offset",
    "OFFSET-LAG": "lag",
}
MEMBERS: Final = {
    "GROUP": "group",
    "MEMBER": "member",
    "PROCESS": "process",
    "CLIENT-ID": "client_id",
    "ASSIGNMENTS": "assignments",
}
MEMBERS_VERBOSE: Final = {
    "GROUP": "group",
    "TARGET-ASSIGNMENT-EPOCH": "target_assignment_epoch",
    "TOPOLOGY-EPOCH": "topology_epoch",
    "MEMBER": "member",
    "MEMBER-PROTOCOL": "protocol",
    "MEMBER-EPOCH": "member_epoch",
    "PROCESS": "process",
    "CLIENT-ID": "client_id",
    "ASSIGNMENTS": "assignments",
}
STATE: Final = {"GROUP": "group", "COORDINATOR (ID)": "coordinator", "STATE": "state", "#MEMBERS": "members"}
STATE_VERBOSE: Final = {
    "GROUP": "group",
    "COORDINATOR (ID)": "coordinator",
    "STATE": "state",
    "GROUP-EPOCH": "group_epoch",
    "TARGET-ASSIGNMENT-EPOCH": "target_assignment_epoch",
    "#MEMBERS": "members",
}


async def print_described(admin: Admin, found: Described, *, members: bool, state: bool, verbose: bool) -> None:
    """One table per group."""
    from millbeck.cli.groups.description import offset_rows, show_coordinators, state_of_streams

    for group in found.streams_groups:
        if members:
            print_table(member_rows(group, verbose=verbose), MEMBERS_VERBOSE if verbose else MEMBERS)
        elif state:
            rows = [state_of_streams(group, verbose=True)]
            await show_coordinators(admin, rows)
            print_table(rows, STATE_VERBOSE if verbose else STATE)
        else:
            rows = await offset_rows(admin, group.with_partitions(), found.failed)
            print_table(rows, OFFSETS_VERBOSE if verbose else OFFSETS)
        click.echo("")


def member_rows(group: StreamsGroupDescription, *, verbose: bool) -> list[dict[str, object]]:
    return [
        {
            "group": group.group_id,
            "target_assignment_epoch": group.assignment_epoch,
            "topology_epoch": each.topology_epoch,
            "member": each.member_id,
            "protocol": "streams",
            "member_epoch": each.epoch,
            "process": each.process_id,
            "client_id": each.client_id,
            "assignments": "".join(_assignments(each, verbose=verbose)),
        }
        for each in group.members
    ]


def _assignments(member: StreamsMemberDescription, *, verbose: bool) -> Iterator[str]:
    yield from _tasks("ACTIVE", member.assigned.active)
    yield from _tasks("STANDBY", member.assigned.standby)
    if verbose:
        yield from _tasks("TARGET-ACTIVE", member.target.active)
        yield from _tasks("TARGET-STANDBY", member.target.standby)


def _tasks(kind: str, tasks: Tasks) -> Iterator[str]:
    if tasks:
        listed = "".join(f"{name}:[{','.join(map(str, partitions))}];" for name, partitions in tasks.items())
        yield f"{kind}:{listed}"
