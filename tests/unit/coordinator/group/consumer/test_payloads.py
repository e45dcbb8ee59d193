from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.consumer import payloads
from millbeck.wire.errors import DecodeError


def test_assignments_come_back_in_every_version(world: Any, worlds: Any) -> None:
    assigned = {worlds.TOPIC_ID: (0, 2)}
    for version in range(payloads.VERSION_MAX + 1):
        payload = payloads.write_assignment(assigned, version, world.cluster)
        assert payloads.version_of(payload) == version
        assert payloads.read_assignment(payload, world.cluster) == assigned
    assert payloads.read_assignment(b"", world.cluster) == {}


def test_topics_that_do_not_exist_are_left_out(world: Any, worlds: Any) -> None:
    payload = payloads.write_assignment({worlds.TOPIC_ID: (0,), b"?" * 16: (1,)}, 1, world.cluster)
    world.set_topics(u=1)
    assert payloads.read_assignment(payload, world.cluster) == {}


def test_a_subscription_of_a_later_version_is_read_as_far_as_it_is_known(worlds: Any) -> None:
    tail = b"\xff\xff\xff\xff" + b"\x00\x00\x00\x00" + b"\xff\xff\xff\xff" + b"\xff\xff" + b"more"
    assert payloads.read_subscription(worlds.subscription("t", version=9, tail=tail)).topics == ["t"]


@pytest.mark.parametrize("payload", [b"", b"\x00", b"\xff\xff\x00\x00", b"\x00\x00\x00"])
def test_bytes_that_are_none_are_refused(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        payloads.read_subscription(payload)
