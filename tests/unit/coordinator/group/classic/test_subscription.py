from __future__ import annotations

from types import ModuleType

import pytest

from millbeck.coordinator.group.classic.subscription import subscribed_topics
from millbeck.wire.errors import DecodeError


@pytest.mark.parametrize("version", [0, 1, 2, 3, 99])
def test_the_topics_are_read_whatever_the_version(worlds: ModuleType, version: int) -> None:
    metadata = worlds.subscription("a", "bé", version=version, tail=b"\xff\xff\xff\xff more of later versions")
    assert subscribed_topics(metadata) == ["a", "bé"]


MALFORMED = {
    "nothing": b"",
    "half a version": b"\x00",
    "negative version": b"\xff\xff\x00\x00\x00\x00",
    "no topics": b"\x00\x00",
    "a count that lies": b"\x00\x00\x7f\xff\xff\xff",
    "a name that is cut": b"\x00\x00\x00\x00\x00\x01\x00\x05ab",
}


@pytest.mark.parametrize("metadata", MALFORMED.values(), ids=MALFORMED.keys())
def test_other_bytes_raise_one_error(metadata: bytes) -> None:
    with pytest.raises(DecodeError):
        subscribed_topics(metadata)
