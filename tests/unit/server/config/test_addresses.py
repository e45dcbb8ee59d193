"""Listener addresses, the map of protocols and limits by address, in Kafka's notation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.addresses import ListenerAddress, parse_address, parse_ip_overrides, parse_protocol_map

MAP = {"PLAINTEXT": "PLAINTEXT", "OUTSIDE": "SSL"}
GOOD = {
    "PLAINTEXT://:9092": ("PLAINTEXT", "", 9092, "PLAINTEXT"),
    "plaintext://localhost:0": ("PLAINTEXT", "localhost", 0, "PLAINTEXT"),
    "OUTSIDE://[::1]:65535": ("OUTSIDE", "::1", 65535, "SSL"),
    " OUTSIDE://10.0.0.1:1 ": ("OUTSIDE", "10.0.0.1", 1, "SSL"),
}
BAD = [
    "",
    "PLAINTEXT",
    "PLAINTEXT:9092",
    "://host:9092",
    "PLAINTEXT://host",
    "PLAINTEXT://host:",
    "PLAINTEXT://host:65536",
    "PLAINTEXT://host:99999999999",
    "PLAINTEXT://host:-1",
    "PLAINTEXT://host:9092x",
    "PLAINTEXT://host:９０９２",
]


@pytest.mark.parametrize(("text", "expected"), GOOD.items(), ids=GOOD.keys())
def test_an_address_is_name_host_and_port(text: str, expected: tuple[str, str, int, str]) -> None:
    name, host, port, protocol = expected
    assert parse_address(text, MAP) == ListenerAddress(name=name, host=host, port=port, protocol=protocol)


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_an_address_names_the_setting(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"advertised\.listeners"):
        parse_address(text, MAP, "advertised.listeners")


def test_a_listener_needs_a_protocol() -> None:
    with pytest.raises(InvalidConfig, match=r"INSIDE has no entry in listener.security.protocol.map"):
        parse_address("INSIDE://:9092", MAP)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        address = parse_address(text, MAP)
    except InvalidConfig:
        return
    assert address.name in MAP
    assert 0 <= address.port <= 65535


def test_the_map_of_protocols_knows_all_four_and_any_case() -> None:
    text = "CONTROLLER:PLAINTEXT, outside:ssl,A:SASL_SSL,B:SASL_PLAINTEXT,"
    assert parse_protocol_map(text) == {
        "CONTROLLER": "PLAINTEXT",
        "OUTSIDE": "SSL",
        "A": "SASL_SSL",
        "B": "SASL_PLAINTEXT",
    }
    assert parse_protocol_map("") == {}


@pytest.mark.parametrize("text", ["PLAINTEXT", "A:TELNET", ":PLAINTEXT", "A:B:PLAINTEXT"])
def test_a_bad_entry_of_the_map_is_named(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"listener.security.protocol.map"):
        parse_protocol_map(f"PLAINTEXT:PLAINTEXT,{text}")


def test_limits_by_address() -> None:
    assert parse_ip_overrides("") == {}
    assert parse_ip_overrides("127.0.0.1:5, ::1:7,name:0") == {"127.0.0.1": 5, "::1": 7, "name": 0}
    for text in ("127.0.0.1", ":5", "name:-1", "name:x"):
        with pytest.raises(InvalidConfig, match=r"max.connections.per.ip.overrides"):
            parse_ip_overrides(text)
