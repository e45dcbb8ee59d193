"""Uuids that would look like a flag are drawn again."""

from __future__ import annotations

import uuid

import pytest

from millbeck.host.environment import HostRandomness


def test_a_uuid_that_begins_with_a_dash_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dashed, good = uuid.UUID("f8000000-0000-4000-8000-000000000000"), uuid.UUID("00000000-0000-4000-8000-000000000001")
    drawn = iter([dashed, dashed, good])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert HostRandomness().uuid() == good.bytes
