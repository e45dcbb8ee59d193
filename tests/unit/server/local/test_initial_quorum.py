"""The voters that a cluster begins with."""

from __future__ import annotations

import pytest

from millbeck.kernel.ids import uuid_text
from millbeck.server.config import NodeConfig
from millbeck.server.local.initial_quorum import InitialQuorum, check_quorum_flags, parse_initial_controllers

A, B = b"\x07" * 16, b"\x08" * 16
TEXT = f"2@b:9093:{uuid_text(B)},1@[::1]:9094:{uuid_text(A)}"
WITH_LISTENER = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller.listener.names": "CTL"}


def here() -> str:
    return "this-host"


def test_entries_name_node_address_and_directory() -> None:
    second, first = parse_initial_controllers(TEXT)
    assert (first.node_id, first.host, first.port, first.directory_id) == (1, "::1", 9094, A)
    assert (second.node_id, second.host, second.port, second.directory_id) == (2, "b", 9093, B)


@pytest.mark.parametrize(
    "text", ["", "1", "x@a:1:" + uuid_text(A), "1@a:" + uuid_text(A), "1@a:9093:short", TEXT + "," + TEXT]
)
def test_what_is_no_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_initial_controllers(text)


def test_ids_that_mean_something_else_are_no_directories() -> None:
    with pytest.raises(ValueError, match="not a valid directory id"):
        parse_initial_controllers(f"1@a:9093:{uuid_text(bytes(16))}")


def test_several_voters_come_in_the_order_of_their_ids() -> None:
    quorum = InitialQuorum(controllers=parse_initial_controllers(TEXT))
    assert quorum.directory_of(2) == B
    assert quorum.directory_of(3) is None
    voters = quorum.voters(NodeConfig(WITH_LISTENER), A, here).voters
    assert [(each.node_id, each.directory_id) for each in voters] == [(1, A), (2, B)]
    assert (voters[1].endpoints[0].name, voters[1].endpoints[0].host) == ("CTL", "b")


def test_a_node_alone_votes_under_the_address_it_advertises() -> None:
    alone = InitialQuorum(controllers=None)
    (voter,) = alone.voters(NodeConfig(WITH_LISTENER), A, here).voters
    assert (voter.node_id, voter.directory_id, voter.endpoints[0].host) == (1, A, "this-host")
    told = WITH_LISTENER | {"advertised.listeners": "CTL://h:1"}
    assert alone.voters(NodeConfig(told), A, here).voters[0].endpoints[0].host == "h"


@pytest.mark.parametrize(
    "texts",
    [
        {},
        {"controller.listener.names": "CTL"},
        WITH_LISTENER | {"listeners": "PLAINTEXT://:9092,CTL://:0"},
    ],
)
def test_a_node_alone_need_not_know_yet_where_it_will_listen(texts: dict[str, str]) -> None:
    (voter,) = InitialQuorum(controllers=None).voters(NodeConfig(texts), A, here).voters
    assert (voter.node_id, voter.directory_id, voter.endpoints) == (1, A, ())


def test_joining_begins_with_nobody() -> None:
    assert InitialQuorum(controllers=()).voters(NodeConfig(WITH_LISTENER), A, here).voters == ()


BROKER = {
    "process.roles": "broker",
    "controller.quorum.bootstrap.servers": "a:1",
    "controller.listener.names": "CTL",
}
REFUSED = {
    "two flags": ({}, ["--standalone", "--initial-controllers"], "are mutually exclusive"),
    "voters in the file": (
        {"controller.quorum.voters": "1@a:9093"},
        ["--standalone"],
        "controller.quorum.voters is set",
    ),
    "no controller": (BROKER, ["--no-initial-controllers"], "role controller"),
    "another node's": ({"node.id": "3"}, ["--initial-controllers"], "node.id=3 is not listed"),
}


@pytest.mark.parametrize(("texts", "flags", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_flags_that_do_not_fit(texts: dict[str, str], flags: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_quorum_flags(NodeConfig(texts), flags, parse_initial_controllers(TEXT))


def test_a_controller_that_names_where_the_quorum_is_does_not_found_one_by_accident() -> None:
    named = {"controller.quorum.bootstrap.servers": "a:9093"}
    with pytest.raises(ValueError, match="choose one of --standalone, --initial-controllers and --no-initial"):
        check_quorum_flags(NodeConfig(named), [], ())
    check_quorum_flags(NodeConfig(named), ["--standalone"], ())
    check_quorum_flags(NodeConfig({**named, "controller.quorum.voters": "1@a:9093"}), [], ())
    roles = {"process.roles": "broker", "controller.listener.names": "CTL", "listeners": "PLAINTEXT://:9092"}
    check_quorum_flags(NodeConfig({**named, **roles}), [], ())


def test_flags_that_fit() -> None:
    check_quorum_flags(NodeConfig({}), [], ())
    check_quorum_flags(NodeConfig({}), ["--initial-controllers"], parse_initial_controllers(TEXT))
