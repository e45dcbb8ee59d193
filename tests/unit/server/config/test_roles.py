"""What a node's roles ask of its other settings."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers
from millbeck.server.config.addresses import parse_address
from millbeck.server.config.roles import QuorumVoter, check_roles, parse_host_and_port, parse_voters
from millbeck.server.config.sections.listeners import ListenerOptions
from millbeck.server.config.sections.metadata_log import QuorumOptions
from millbeck.server.config.sections.node import NodeOptions

VOTERS = "1@a:9093,2@b:9093,3@c:9093"


def check(**settings: str) -> None:
    texts = {name.replace("_", "."): text for name, text in settings.items()}
    layers = ConfigLayers(static=texts)
    listener = ListenerOptions.resolve(layers)
    names = tuple(name.upper() for name in listener.controller_listener_names)
    protocols = {"PLAINTEXT": "PLAINTEXT", "IN": "PLAINTEXT", "CTL": "PLAINTEXT"}
    addresses = [parse_address(text, protocols) for text in listener.listeners]
    check_roles(NodeOptions.resolve(layers), listener, QuorumOptions.resolve(layers), addresses, names)


FINE = {
    "nothing said": {},
    "alone by name": {"controller_quorum_voters": "1@localhost:9093"},
    "both roles of three": {
        "controller_quorum_voters": VOTERS,
        "controller_listener_names": "CTL",
        "listeners": "PLAINTEXT://:9092,CTL://:9093",
    },
    "a broker": {
        "process_roles": "broker",
        "node_id": "4",
        "controller_quorum_voters": VOTERS,
        "controller_listener_names": "CTL",
    },
    "a broker that looks for its controllers": {
        "process_roles": "broker",
        "controller_quorum_bootstrap_servers": "a:9093",
        "controller_listener_names": "CTL",
    },
    "a controller": {
        "process_roles": "controller",
        "controller_quorum_voters": VOTERS,
        "controller_listener_names": "CTL",
        "listeners": "CTL://:9093",
    },
}


@pytest.mark.parametrize("settings", FINE.values(), ids=FINE.keys())
def test_what_fits_is_let_in(settings: dict[str, str]) -> None:
    check(**settings)


REFUSED = {
    "a controller that does not vote": (FINE["a controller"] | {"node_id": "4"}, "is not among the voters 1,2,3"),
    "a broker that votes": (FINE["a broker"] | {"node_id": "2"}, "is among the voters 1,2,3"),
    "a broker without controllers": (
        {"process_roles": "broker", "controller_listener_names": "CTL"},
        "requires it or controller.quorum.voters",
    ),
    "a broker that does not know their listener": (
        {"process_roles": "broker", "controller_quorum_bootstrap_servers": "a:9093"},
        "requires the name of the controllers' listener",
    ),
    "a broker that listens for controllers": (
        FINE["a broker"] | {"listeners": "PLAINTEXT://:9092,CTL://:9093"},
        "must not have a controller listener",
    ),
    "a controller that listens for clients": (
        FINE["a controller"] | {"listeners": "CTL://:9093,PLAINTEXT://:9092"},
        "PLAINTEXT is not in controller.listener.names",
    ),
    "a controller with no listener named": (
        {"process_roles": "controller", "controller_quorum_voters": VOTERS},
        "may have controller listeners only",
    ),
    "a voter nobody can reach": (
        {"controller_quorum_voters": VOTERS, "controller_listener_names": "CTL"},
        "by which the other voters connect",
    ),
    "a broker nobody can reach": (
        FINE["both roles of three"] | {"listeners": "CTL://:9093"},
        "no listener for clients",
    ),
    "brokers on the controllers' listener": (
        FINE["both roles of three"] | {"inter_broker_listener_name": "ctl"},
        "is one of controller.listener.names",
    ),
    "a voter twice": ({"controller_quorum_voters": "1@a:9093,1@b:9093"}, "node 1 is listed twice"),
    "no port": ({"controller_quorum_voters": "1@a:0"}, "is not host:port"),
    "no port to look for": (
        FINE["a broker that looks for its controllers"] | {"controller_quorum_bootstrap_servers": "a:70000"},
        "controller.quorum.bootstrap.servers",
    ),
}


@pytest.mark.parametrize(("settings", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_what_does_not_fit_is_refused(settings: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        check(**settings)
    assert named in caught.value.message


def test_voters_come_in_the_order_of_their_ids() -> None:
    assert parse_voters(["3@c:3", "1@[::1]:1"]) == (
        QuorumVoter(node_id=1, host="::1", port=1),
        QuorumVoter(node_id=3, host="c", port=3),
    )


def test_an_address_needs_both_halves() -> None:
    assert parse_host_and_port("host:9093", "x") == ("host", 9093)
    for text in (":9093", "host", "host:", "host:x", "host:65536"):
        with pytest.raises(InvalidConfig, match=r"^x: "):
            parse_host_and_port(text, "x")
