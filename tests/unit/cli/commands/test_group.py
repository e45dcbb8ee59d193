from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result

from millbeck.cli.commands import group
from millbeck.cli.groups.description import member_rows, state_row
from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import GroupDescription, GroupListing, GroupOffset, MemberDescription
from millbeck.client.admin.share_groups import ShareGroupDescription, ShareMemberDescription, ShareOffset
from millbeck.client.admin.streams_groups import StreamsGroupDescription, StreamsMemberDescription, StreamsTasks
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    NotCoordinator,
    UnknownServerError,
)
from millbeck.kernel.ids import TopicPartition

MEMBER = MemberDescription(
    member_id="m-1",
    instance_id=None,
    client_id="c",
    host="/127.0.0.1",
    assignment=(TopicPartition("orders", 0), TopicPartition("orders", 1)),
    metadata=b"",
    assignment_bytes=b"",
)
GROUP = GroupDescription(
    group_id="billing",
    state="Stable",
    protocol_type="consumer",
    protocol="range",
    coordinator_id=1,
    members=(MEMBER,),
    authorized_operations=0,
)


def test_members_and_what_they_have() -> None:
    (row,) = member_rows(GROUP, verbose=False)
    assert row["partitions"] == 2
    assert "assignment" not in row
    (row,) = member_rows(GROUP, verbose=True)
    assert row["assignment"] == ["orders-0", "orders-1"]


def test_state() -> None:
    assert state_row(GROUP) == {
        "group": "billing",
        "coordinator": 1,
        "assignment_strategy": "range",
        "state": "Stable",
        "members": 1,
    }


def test_a_group_in_which_the_broker_assigns_shows_its_epochs() -> None:
    member = replace(MEMBER, epoch=4, target_assignment=MEMBER.assignment[:1], uses_classic_protocol=False)
    described = replace(GROUP, members=(member,), type="consumer", epoch=5, target_epoch=5)
    (row,) = member_rows(described, verbose=True)
    assert (row["current_epoch"], row["target_epoch"], row["target_assignment"], row["upgraded"]) == (
        4,
        5,
        ["orders-0"],
        True,
    )
    state = state_row(described, verbose=True)
    assert (state["group_epoch"], state["target_assignment_epoch"]) == (5, 5)


USAGE = {
    "describe nobody": (("group", "describe"), "no group given"),
    "two views": (("group", "describe", "g", "--members", "--state"), "choose one of"),
    "reset nobody": (("group", "reset", "--all-topics", "--to-latest"), "no group given"),
    "reset all and one": (
        ("group", "reset", "a", "--all-groups", "--all-topics", "--to-latest"),
        "cannot be combined",
    ),
    "reset nothing": (("group", "reset", "g", "--to-latest"), "--topic or --all-topics"),
    "reset all and some": (
        ("group", "reset", "g", "--topic", "t", "--all-topics", "--to-latest"),
        "--topic or --all-topics",
    ),
    "reset nowhere": (("group", "reset", "g", "--all-topics"), "give exactly one of"),
    "reset to two places": (
        ("group", "reset", "g", "--all-topics", "--to-latest", "--to-offset", "5"),
        "give exactly one of",
    ),
    "both": (("group", "reset", "g", "--all-topics", "--to-latest", "--dry-run", "--execute"), "cannot be combined"),
    "in Kafka's way": (("group", "--reset-offsets", "--group", "g", "--all-topics"), "give exactly one of"),
    "a state nobody has": (("group", "list", "--state", "Foo"), "--state: 'Foo' is not one of Assigning"),
    "a type nobody has": (("group", "list", "--type", "classic,foo"), "--type: 'foo' is not one of Classic"),
    "delete nobody": (("group", "--delete"), "no group given"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)


NOTES = "millbeck-0123456789abcdef01234567"
"""A group in which an exactly-once pipeline notes its batches."""


class FakeAdmin:
    """Groups of every protocol, and one of each that fails. Answers what `describe` asks for."""

    def __init__(self) -> None:
        self.described = {"billing": GROUP, "gone": replace(GROUP, group_id="gone", state="Dead", members=())}
        self.types = {"billing": "Classic", "jobs": "Share", "gone": "Consumer", "topology": "Streams", "held": "Share"}
        self.types |= {"counting": "Streams"}
        self.types |= {"denied": "Consumer", NOTES: "Classic"}

    async def list_groups(self, **asked: object) -> dict[str, GroupListing]:
        return {
            name: GroupListing(group_id=name, protocol_type="", state="Stable", type=type_)
            for name, type_ in self.types.items()
        }

    async def describe_groups(self, names: list[str]) -> Outcomes[str, GroupDescription]:
        denied = {"denied": GroupAuthorizationFailed()}
        return Outcomes({name: self.described.get(name) or denied.get(name) or GroupIdNotFound() for name in names})

    async def describe_share_groups(self, names: list[str]) -> Outcomes[str, ShareGroupDescription]:
        held: dict[str, ShareGroupDescription | ApiError] = {"jobs": JOBS, "held": CoordinatorNotAvailable()}
        return Outcomes({name: held.get(name) or GroupIdNotFound() for name in names})

    async def describe_streams_groups(self, names: list[str]) -> Outcomes[str, StreamsGroupDescription]:
        held: dict[str, StreamsGroupDescription | ApiError] = {"counting": COUNTING, "topology": UnknownServerError()}
        return Outcomes({name: held.get(name) or GroupIdNotFound() for name in names})

    async def list_group_offsets(self, names: list[str]) -> Outcomes[str, dict[TopicPartition, GroupOffset]]:
        return Outcomes({name: {TopicPartition("orders", 0): GroupOffset(offset=3)} for name in names})

    async def list_share_offsets(self, names: list[str]) -> Outcomes[str, dict[TopicPartition, ShareOffset]]:
        return Outcomes({name: {TopicPartition("orders", 1): ShareOffset(start_offset=7, lag=2)} for name in names})

    async def list_offsets(self, partitions: dict[TopicPartition, int]) -> Outcomes[TopicPartition, Any]:
        return Outcomes({})

    async def describe_cluster(self) -> Any:
        return SimpleNamespace(nodes=[SimpleNamespace(node_id=1, host="h", port=9092)])

    async def describe_configs(self, resources: Any) -> Outcomes[Any, Any]:
        return Outcomes({})


JOBS = ShareGroupDescription(
    group_id="jobs",
    state="Stable",
    epoch=2,
    assignment_epoch=2,
    assignor="simple",
    coordinator_id=1,
    members=(
        ShareMemberDescription(
            member_id="s-1", client_id="c", host="/h", epoch=2, assignment=(TopicPartition("orders", 1),)
        ),
    ),
)
COUNTING = StreamsGroupDescription(
    group_id="counting",
    state="Stable",
    epoch=3,
    assignment_epoch=3,
    coordinator_id=1,
    members=(
        StreamsMemberDescription(
            member_id="t-1",
            process_id="p",
            client_id="c",
            host="/h",
            epoch=3,
            topology_epoch=0,
            assigned=StreamsTasks(active={"0": (0, 2)}, standby={"1": (1,)}),
            target=StreamsTasks(active={"0": (0,)}),
        ),
    ),
    source_topics={"0": ("orders",)},
)
VIEWS = {
    "offsets": ((), "current_offset", "start_offset"),
    "offsets by name": (("--offsets",), "log_end_offset", "lag"),
    "members": (("--members",), "partitions", "assignment"),
    "members in full": (("--members", "--verbose"), "group_instance_id", "member_epoch"),
    "state": (("--state",), "assignment_strategy", "state"),
    "state in full": (("--state", "--verbose"), "target_assignment_epoch", "assignment_epoch"),
}


@pytest.fixture
def against_fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    admin = FakeAdmin()
    monkeypatch.setattr(group, "run_admin", lambda target, work: asyncio.run(work(admin)))
    return admin


@pytest.mark.parametrize(("flags", "of_group", "of_share_group"), VIEWS.values(), ids=VIEWS.keys())
def test_all_groups_are_described_each_by_its_protocol(
    run: Callable[..., Result],
    against_fake: FakeAdmin,
    flags: tuple[str, ...],
    of_group: str,
    of_share_group: str,
) -> None:
    done = run("group", "describe", "--all-groups", *flags, "--output", "json")
    rows = {row["group"]: row for row in json.loads(done.stdout)}
    assert rows.keys() >= {"billing", "jobs"}
    assert of_group in rows["billing"]
    assert of_share_group in rows["jobs"]
    assert done.exit_code == 1
    assert "topology: " in done.stderr
    assert "held: " in done.stderr
    assert "denied: " in done.stderr
    assert "COORDINATOR_NOT_AVAILABLE" in done.stderr
    assert "gone" not in done.stderr, "it was deleted after it was listed"
    assert NOTES not in done.stdout + done.stderr


def test_groups_of_batch_notes_are_not_listed(run: Callable[..., Result], against_fake: FakeAdmin) -> None:
    listed = {row["group"] for row in json.loads(run("group", "list", "--output", "json").stdout)}
    assert listed == set(against_fake.types) - {NOTES}
    assert NOTES not in run("group", "--list").stdout


def test_a_streams_group_is_described_by_tasks(run: Callable[..., Result], against_fake: FakeAdmin) -> None:
    def row(*flags: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(run("group", "describe", "counting", *flags, "--output", "json").stdout)[0]
        return found

    members = row("--members", "--verbose")
    assert (members["process"], members["active"], members["standby"]) == ("p", "0:[0,2]", "1:[1]")
    assert (members["current_epoch"], members["target_epoch"], members["target_active"]) == (3, 3, "0:[0]")
    assert (row("--state", "--verbose")["group_epoch"], row("--state")["members"]) == (3, 1)
    offsets = row()
    assert (offsets["topic"], offsets["partition"], offsets["current_offset"]) == ("orders", 0, 3)
    assert offsets["consumer_id"] == "t-1"


def test_groups_of_two_protocols_are_two_tables(run: Callable[..., Result], against_fake: FakeAdmin) -> None:
    done = run("group", "describe", "billing", "jobs", "--state")
    assert done.exit_code == 0
    ours, shares = done.stdout.split("\n\n")
    assert "h:9092 (1)" in ours
    assert "h:9092 (1)" in shares
    assert ("billing" in ours, "jobs" in shares) == (True, True)
    assert run("group", "describe", "jobs").stdout.startswith("GROUP")


def test_a_group_that_is_not_there_is_named_beside_the_others(
    run: Callable[..., Result], against_fake: FakeAdmin
) -> None:
    done = run("group", "describe", "billing", "gone", "missing")
    assert "billing" in done.stdout
    assert done.exit_code == 1
    assert "gone: " in done.stderr
    assert "missing: " in done.stderr
    assert done.stderr.count("GROUP_ID_NOT_FOUND") == 2


def test_offsets_that_cannot_be_read_do_not_hide_the_others(
    run: Callable[..., Result], against_fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(names: list[str]) -> Outcomes[str, Any]:
        return Outcomes(dict.fromkeys(names, NotCoordinator()))

    monkeypatch.setattr(against_fake, "list_group_offsets", refused)
    done = run("group", "describe", "billing", "jobs")
    assert "jobs" in done.stdout
    assert done.exit_code == 1
    assert "billing: " in done.stderr


def test_nothing_to_describe_is_an_empty_list(run: Callable[..., Result], against_fake: FakeAdmin) -> None:
    against_fake.types.clear()
    assert run("group", "describe", "--all-groups").stdout == ""
    assert json.loads(run("group", "describe", "--all-groups", "-o", "json").stdout) == []
