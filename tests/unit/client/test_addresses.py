"""What bootstrap.servers may hold."""

from __future__ import annotations

import pytest

from millbeck.client.addresses import Address, parse_address, parse_addresses
from millbeck.kernel.errors import InvalidConfig

GOOD = {
    "localhost": Address("localhost", 9092),
    "PLAINTEXT://broker.example": Address("broker.example", 9092),
    "[::1]": Address("::1", 9092),
    "10.0.0.1": Address("10.0.0.1", 9092),
    "localhost:9092": Address("localhost", 9092),
    "10.0.0.1:1": Address("10.0.0.1", 1),
    "[::1]:9092": Address("::1", 9092),
    "[fe80::1%eth0]:65535": Address("fe80::1%eth0", 65535),
    "PLAINTEXT://kafka-1.example.com:9092": Address("kafka-1.example.com", 9092),
    "SASL_SSL://[2001:db8::7]:9093": Address("2001:db8::7", 9093),
}
BAD = [
    "9092",
    "localhost:",
    ":9092",
    "localhost:0",
    "localhost:65536",
    "a b:1",
    "::1:9092",
    "::1",
    "[::1]:",
    "x:1x",
    "h:-1",
]


@pytest.mark.parametrize(("text", "address"), GOOD.items())
def test_good_addresses(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", BAD)
def test_bad_addresses_are_named(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"bootstrap\.servers"):
        parse_address(text)


def test_a_bare_ipv6_address_gets_a_hint() -> None:
    with pytest.raises(InvalidConfig, match="brackets"):
        parse_address("::1:9092")


@pytest.mark.parametrize("address", GOOD.values(), ids=str)
def test_the_text_of_an_address_reads_back(address: Address) -> None:
    assert parse_address(str(address)) == address


def test_several_addresses_keep_their_order_without_repetition() -> None:
    assert parse_addresses(["b:1", "a:1", "", "b:1"]) == (Address("b", 1), Address("a", 1))


def test_no_address_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match="at least one"):
        parse_addresses([""])
