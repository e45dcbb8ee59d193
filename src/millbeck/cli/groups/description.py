"""Describes groups of every protocol, for the rows of ``millbeck group describe``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from millbeck.cli.verbs import kafka_tool
from millbeck.kernel.ids import holds_batch_notes

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import GroupDescription
    from millbeck.client.admin.streams_groups import StreamsGroupDescription
    from millbeck.kernel.errors import ApiError

DESCRIBED_TYPES: Final = ("", "classic", "consumer", "share", "streams")
"""The types of groups that can be described; old brokers return no type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """The described groups of all protocols; share and streams groups are separate, since their rows have other
    columns."""

    groups: list[GroupDescription]
    share_groups: list[str]
    streams_groups: list[StreamsGroupDescription]
    failed: dict[str, ApiError]
    """The error by group; errors of later requests are added."""


async def describe_all(admin: Admin, names: list[str], *, all_groups: bool) -> Described:
    from millbeck.client.admin.outcomes import Outcomes
    from millbeck.kernel.errors import GroupIdNotFound, UnsupportedVersion

    listed = await admin.list_groups() if all_groups else {}
    asked = names or [name for name in listed if kafka_tool() is not None or not holds_batch_notes(name)]
    found = await admin.describe_groups(asked) if asked else Outcomes({})
    groups = [each for each in found.succeeded.values() if each.state != "Dead"]
    known = {each.group_id for each in groups}
    failed = {name: found.failed.get(name) or GroupIdNotFound() for name in asked if name not in known}
    unknown = [name for name, error in failed.items() if isinstance(error, GroupIdNotFound)]
    shares = await admin.describe_share_groups(unknown) if unknown else Outcomes({})
    left = [name for name in unknown if name not in shares.succeeded]
    streams = await admin.describe_streams_groups(left) if left else Outcomes({})
    for name in unknown:
        errors = [error for outcomes in (shares, streams) if (error := outcomes.failed.get(name)) is not None]
        serious = [error for error in errors if not isinstance(error, GroupIdNotFound | UnsupportedVersion)]
        is_found = name in shares.succeeded or name in streams.succeeded
        if serious and not is_found:
            failed[name] = serious[0]
        elif is_found or (name in listed and listed[name].type.lower() in DESCRIBED_TYPES):
            # The group has another type, or was deleted after the listing.
            del failed[name]
    return Described(
        groups=groups,
        share_groups=list(shares.succeeded),
        streams_groups=list(streams.succeeded.values()),
        failed=failed,
    )


async def share_rows(
    admin: Admin, found: Described, *, members: bool, state: bool, verbose: bool
) -> list[dict[str, object]]:
    if not found.share_groups:
        return []
    from millbeck.cli.commands.share import described_rows

    rows, failed = await described_rows(admin, found.share_groups, members=members, state=state, verbose=verbose)
    found.failed.update(failed)
    return rows


async def streams_rows(
    admin: Admin, found: Described, *, members: bool, state: bool, verbose: bool
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for group in found.streams_groups:
        if members:
            rows += _streams_members(group, verbose)
        elif state:
            rows.append(state_of_streams(group, verbose))
        else:
            rows += await offset_rows(admin, group.with_partitions(), found.failed)
    return rows


def _streams_members(group: StreamsGroupDescription, verbose: bool) -> list[dict[str, object]]:
    rows = []
    for member in group.members:
        row: dict[str, object] = {
            "group": group.group_id,
            "member": member.member_id,
            "process": member.process_id,
            "host": member.host,
            "client_id": member.client_id,
            "active": tasks_text(member.assigned.active),
            "standby": tasks_text(member.assigned.standby),
        }
        if verbose:
            row |= {
                "current_epoch": member.epoch,
                "target_epoch": group.assignment_epoch,
                "topology_epoch": member.topology_epoch,
                "target_active": tasks_text(member.target.active),
                "target_standby": tasks_text(member.target.standby),
            }
        rows.append(row)
    return rows


def tasks_text(tasks: Mapping[str, tuple[int, ...]]) -> str:
    """Tasks as Kafka's tool writes them: the partitions by subtopology."""
    return " ".join(f"{name}:[{','.join(map(str, partitions))}]" for name, partitions in tasks.items())


def state_of_streams(group: StreamsGroupDescription, verbose: bool) -> dict[str, object]:
    return {
        "group": group.group_id,
        "coordinator": group.coordinator_id,
        "state": group.state,
        **({"group_epoch": group.epoch, "target_assignment_epoch": group.assignment_epoch} if verbose else {}),
        "members": len(group.members),
    }


async def show_coordinators(admin: Admin, rows: list[dict[str, object]]) -> None:
    """Add the coordinator's host and port to its id, as Kafka's tool does."""
    nodes = {each.node_id: f"{each.host}:{each.port}" for each in (await admin.describe_cluster()).nodes}
    for row in rows:
        coordinator_id = cast("int", row["coordinator"])
        row["coordinator"] = f"{nodes.get(coordinator_id, '?')} ({coordinator_id})"


def member_rows(group: GroupDescription, verbose: bool) -> list[dict[str, object]]:
    rows = []
    for each in group.members:
        row: dict[str, object] = {
            "group": group.group_id,
            "consumer_id": each.member_id,
            "group_instance_id": each.instance_id,
            "host": each.host,
            "client_id": each.client_id,
            "partitions": len(each.assignment),
        }
        if verbose:
            row["assignment"] = [str(partition) for partition in each.assignment]
        if verbose and each.target_assignment is not None:
            row |= {
                "current_epoch": each.epoch,
                "target_epoch": group.target_epoch,
                "target_assignment": [str(partition) for partition in each.target_assignment],
                "upgraded": not each.uses_classic_protocol,
            }
        rows.append(row)
    return rows


def state_row(group: GroupDescription, verbose: bool = False) -> dict[str, object]:
    row: dict[str, object] = {
        "group": group.group_id,
        "coordinator": group.coordinator_id,
        "assignment_strategy": group.protocol,
        "state": group.state,
        "members": len(group.members),
    }
    if verbose:
        row |= {"group_epoch": group.epoch, "target_assignment_epoch": group.target_epoch}
    return row


async def offset_rows(admin: Admin, group: GroupDescription, failed: dict[str, ApiError]) -> list[dict[str, object]]:
    """A row per partition with a committed offset or an assigned member; none for a group that failed."""
    from millbeck.client.admin.results import LATEST

    offsets = await admin.list_group_offsets([group.group_id])
    if offsets.failed:
        failed |= offsets.failed
        return []
    committed = offsets[group.group_id]
    owners = {partition: each for each in group.members for partition in each.assignment}
    partitions = sorted({**committed, **owners})
    ends = await admin.list_offsets(dict.fromkeys(partitions, LATEST)) if partitions else None
    rows = []
    for partition in partitions:
        current = committed[partition].offset if partition in committed else None
        end = ends.succeeded[partition].offset if ends is not None and partition in ends.succeeded else None
        owner = owners.get(partition)
        rows.append(
            {
                "group": group.group_id,
                "topic": partition.topic,
                "partition": partition.partition,
                "current_offset": current,
                "log_end_offset": end,
                "lag": None if current is None or end is None else max(0, end - current),
                "consumer_id": owner.member_id if owner is not None else None,
                "host": owner.host if owner is not None else None,
                "client_id": owner.client_id if owner is not None else None,
            }
        )
    return rows
