from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from millbeck.cli.nodes.self_check import Records, address_of, difference

SENT: Records = {0: [(b"a", b"1"), (b"b", b"2")], 1: []}

DIFFERENCES = {
    "lost": ({0: [(b"a", b"1")], 1: []}, "partition 0 returned 1 of 2 records"),
    "changed": ({0: [(b"a", b"1"), (b"b", b"3")], 1: []}, "partition 0, record 1 is (b'b', b'3')"),
    "out of order": ({0: [(b"b", b"2"), (b"a", b"1")], 1: []}, "partition 0, record 0 is (b'b', b'2')"),
    "too many": ({0: [(b"a", b"1"), (b"b", b"2")], 1: [(None, None)]}, "more records were consumed"),
}


@pytest.mark.parametrize(("received", "expected"), DIFFERENCES.values(), ids=DIFFERENCES.keys())
def test_the_first_difference_is_named(received: Records, expected: str) -> None:
    assert expected in difference(SENT, received)


def node(*listeners: tuple[str, str, int]) -> Any:
    return SimpleNamespace(
        listeners=[
            SimpleNamespace(address=SimpleNamespace(protocol=protocol, host=host), port=port)
            for protocol, host, port in listeners
        ]
    )


def test_the_node_is_reached_without_a_certificate() -> None:
    assert address_of(node(("SSL", "a", 1), ("PLAINTEXT", "127.0.0.1", 2))) == "127.0.0.1:2"
    assert address_of(node(("PLAINTEXT", "::1", 2))) == "[::1]:2"
    assert address_of(node(("PLAINTEXT", "", 2))) == "localhost:2"
    with pytest.raises(click.ClickException, match="PLAINTEXT"):
        address_of(node(("SSL", "a", 1)))
