"""Principals as bytes: Kafka's, and back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.security.principal import Principal
from millbeck.security.principal_bytes import decode_principal, encode_principal
from millbeck.wire.errors import DecodeError


def test_the_bytes_are_kafkas() -> None:
    # Version 0, compact strings, a boolean and no tags.
    assert encode_principal(Principal("User", "ab", True)) == b"\0\0" + b"\x05User" + b"\x03ab" + b"\x01" + b"\0"


@settings(max_examples=50)
@given(st.builds(Principal, st.text(max_size=20), st.text(max_size=20), st.booleans()))
def test_round_trip(principal: Principal) -> None:
    assert decode_principal(encode_principal(principal)) == principal


@settings(max_examples=100)
@given(st.binary(max_size=40))
def test_anything_else_is_refused_in_one_way(data: bytes) -> None:
    try:
        decode_principal(data)
    except DecodeError:
        return
    assert data[:2] == b"\0\0"


def test_other_versions_are_refused() -> None:
    with pytest.raises(DecodeError, match="version 1"):
        decode_principal(b"\0\x01" + encode_principal(Principal("User", "a"))[2:])
