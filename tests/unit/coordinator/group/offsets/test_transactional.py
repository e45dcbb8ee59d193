"""Who may commit a group's offsets inside a transaction."""

from __future__ import annotations

import pytest

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.offsets.transactional import validate_commit
from millbeck.kernel.errors import ApiError, IllegalGeneration, UnknownMemberId
from millbeck.wire.messages.group_offsets import OffsetCommitRequest


def commit(generation_id: int = -1, member_id: str = "") -> OffsetCommitRequest:
    return OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=generation_id, member_id=member_id)


def is_allowed(group: ClassicGroup | None, request: OffsetCommitRequest) -> bool:
    try:
        validate_commit(group, request)
    except ApiError:
        return False
    return True


def test_a_producer_that_names_no_member_is_let_through() -> None:
    for group in (None, ClassicGroup("g")):
        assert is_allowed(group, commit())


def test_a_producer_that_names_one_is_held_to_it() -> None:
    with pytest.raises(IllegalGeneration):
        validate_commit(None, commit(3, "m"))
    with pytest.raises(UnknownMemberId):
        validate_commit(ClassicGroup("g"), commit(3, "m"))
