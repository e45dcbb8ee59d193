from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from millbeck.cli.group import member_rows, state_row
from millbeck.client.admin.results import GroupDescription, MemberDescription
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
    group = replace(GROUP, members=(member,), type="consumer", epoch=5, target_epoch=5)
    (row,) = member_rows(group, verbose=True)
    assert (row["current_epoch"], row["target_epoch"], row["target_assignment"], row["upgraded"]) == (
        4,
        5,
        ["orders-0"],
        True,
    )
    state = state_row(group, verbose=True)
    assert (state["group_epoch"], state["target_assignment_epoch"]) == (5, 5)


USAGE = {
    "describe nobody": (("group", "describe"), "which group?"),
    "two views": (("group", "describe", "g", "--members", "--state"), "choose one of"),
    "reset nobody": (("group", "reset", "--all-topics", "--to-latest"), "which group?"),
    "reset two": (("group", "reset", "a", "--group", "b", "--all-topics", "--to-latest"), "one group at a time"),
    "reset nothing": (("group", "reset", "g", "--to-latest"), "--topic or --all-topics"),
    "reset all and some": (
        ("group", "reset", "g", "--topic", "t", "--all-topics", "--to-latest"),
        "--topic or --all-topics",
    ),
    "reset nowhere": (("group", "reset", "g", "--all-topics"), "where to?"),
    "reset to two places": (("group", "reset", "g", "--all-topics", "--to-latest", "--to-offset", "5"), "where to?"),
    "both": (("group", "reset", "g", "--all-topics", "--to-latest", "--dry-run", "--execute"), "exclude each other"),
    "in Kafka's way": (("group", "--reset-offsets", "--group", "g", "--all-topics"), "where to?"),
    "a state nobody has": (("group", "list", "--state", "Foo"), "--state: 'Foo' is not one of Assigning"),
    "a type nobody has": (("group", "list", "--type", "classic,foo"), "--type: 'foo' is not one of Classic"),
    "delete nobody": (("group", "--delete"), "which group?"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)
