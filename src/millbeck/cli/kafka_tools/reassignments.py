"""The output of ``kafka-reassign-partitions``: assignments as JSON, and sentences that scripts search for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import Reassignment
    from millbeck.kernel.ids import TopicPartition

ANY_DIRECTORY: Final = "any"

Assignment = Mapping["TopicPartition", Sequence[int]]
Directories = Mapping[tuple[int, "TopicPartition"], str]


async def directories_of(admin: Admin, assignment: Assignment) -> dict[tuple[int, TopicPartition], str]:
    """The log directory by broker and partition; brokers that do not answer are left out."""
    found = (await admin.describe_log_dirs()).succeeded
    return {
        (broker, replica.partition): directory.path
        for broker, directories in found.items()
        for directory in directories
        for replica in directory.replicas
        if replica.partition in assignment and not replica.is_future
    }


def assignment_line(assignment: Assignment, directories: Directories | None = None) -> str:
    """One line of JSON, which the tool reads again as ``--reassignment-json-file``."""
    entries = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "replicas": list(replicas),
            "log_dirs": [(directories or {}).get((broker, each), ANY_DIRECTORY) for broker in replicas],
        }
        for each, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": entries}, separators=(",", ":"))


async def before_moving(admin: Admin, assignment: Assignment, throttle: int | None) -> str:
    line = assignment_line(assignment, await directories_of(admin, assignment))
    text = (
        f"Current partition replica assignment\n\n{line}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback"
    )
    if throttle is None:
        return text
    return (
        f"{text}\nWarning: You must run --verify periodically, until the reassignment completes, to ensure the "
        f"throttle is removed.\nThe inter-broker throttle limit was set to {throttle} B/s"
    )


def started_text(partitions: Iterable[TopicPartition]) -> str:
    names = [str(each) for each in sorted(partitions)]
    return f"Successfully started partition reassignment{'s' if len(names) > 1 else ''} for {','.join(names)}"


def status_line(
    partition: TopicPartition,
    wanted: Sequence[int],
    current: Assignment,
    moving: Mapping[TopicPartition, Reassignment],
) -> str:
    if partition in moving:
        return f"Reassignment of partition {partition} is still in progress."
    if partition not in current:
        return f"There is no active reassignment of partition {partition}, but the partition does not exist."
    if tuple(current[partition]) == tuple(wanted):
        return f"Reassignment of partition {partition} is completed."
    return (
        f"There is no active reassignment of partition {partition}, but replica set is {_ids(current[partition])} "
        f"rather than {_ids(wanted)}."
    )


def throttles_cleared(brokers: Sequence[int], topics: Sequence[str]) -> str:
    return (
        f"\nClearing broker-level throttles on broker{'s' if len(brokers) > 1 else ''} {_ids(brokers)}\n"
        f"Clearing topic-level throttles on topic{'s' if len(topics) > 1 else ''} {','.join(topics)}"
    )


def listed_text(moving: Mapping[TopicPartition, Reassignment]) -> str:
    if not moving:
        return "No partition reassignments found."
    lines = ["Current partition reassignments:"]
    for partition, move in sorted(moving.items()):
        changes = "".join(
            f" {word}: {_ids(brokers)}."
            for word, brokers in (("Adding replicas", move.adding), ("Removing replicas", move.removing))
            if brokers
        )
        lines.append(f"{partition}: replicas: {_ids(move.replicas)}.{changes}")
    return "\n".join(lines)


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))
