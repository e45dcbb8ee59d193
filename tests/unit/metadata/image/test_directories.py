from __future__ import annotations

from millbeck.metadata.image.directories import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    is_reserved,
)


def test_ids_that_say_something_else_are_no_directories() -> None:
    assert all(is_reserved(each) for each in (LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY))
    assert is_reserved(bytes(15) + bytes([99]))
    assert not is_reserved(bytes(15) + bytes([100]))
    assert not is_reserved(b"\x01" + bytes(15))
