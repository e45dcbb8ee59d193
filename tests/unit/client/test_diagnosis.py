"""What answers instead of a broker is named."""

from __future__ import annotations

import pytest

from millbeck.client.diagnosis import peer_description


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b"HTTP/1.1 400 Bad Request", "an HTTP server answered"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "set security.protocol=SSL or SASL_SSL"),
        (b"SSH-2.0-OpenSSH", "an SSH server"),
        (b"220 smtp.example.org", "not a Kafka broker"),
    ],
)
def test_a_stranger_is_named(first: bytes, words: str) -> None:
    assert words in (peer_description(first) or "")


@pytest.mark.parametrize("first", [b"", b"\0", b"\0\0\1\x20\0\0\0\0"])
def test_what_may_be_a_broker_is_none(first: bytes) -> None:
    assert peer_description(first) is None
