from __future__ import annotations

from millbeck.wire.errors import DecodeError, EncodeError, SchemaError


def test_what_the_peer_did_is_never_taken_for_what_we_did() -> None:
    assert not issubclass(DecodeError, EncodeError)
    assert not issubclass(EncodeError, DecodeError)
    assert not issubclass(SchemaError, ValueError)
