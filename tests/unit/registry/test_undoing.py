"""What an aborted write is replaced with changes nothing for who has read committed records."""

from __future__ import annotations

import pytest

from millbeck.client.schemas.log_records import KeyType, LogKey, encode_key
from millbeck.registry.state import RegistryState
from millbeck.registry.undoing import undo

A1 = encode_key(LogKey(KeyType.SCHEMA, "a", 1))
OLDER_A1 = b'{"magic":0,"keytype":"SCHEMA","subject":"a","version":1}'
VALUE = b'{"subject":"a","version":1,"id":1,"schema":"x","deleted":false}'
KEYS = {
    "a schema": A1,
    "a schema under another form": OLDER_A1,
    "a schema that never was": encode_key(LogKey(KeyType.SCHEMA, "b", 1)),
    "a subject's delete": encode_key(LogKey(KeyType.DELETE_SUBJECT, "a")),
    "a clearing": encode_key(LogKey(KeyType.CLEAR_SUBJECT, "a")),
    "settings": encode_key(LogKey(KeyType.CONFIG, "a")),
    "settings that never were": encode_key(LogKey(KeyType.CONFIG, "b")),
    "a mode": encode_key(LogKey(KeyType.MODE)),
    "a context": encode_key(LogKey(KeyType.CONTEXT, ".lab")),
    "an unreadable key": b"x",
}


def _state(*, is_deleted: bool) -> RegistryState:
    state = RegistryState()
    state.replay(A1, VALUE)
    state.replay(OLDER_A1, VALUE)
    state.replay(encode_key(LogKey(KeyType.CONFIG, "a")), b'{"compatibilityLevel":"FULL"}')
    state.replay(encode_key(LogKey(KeyType.MODE)), b'{"mode":"READONLY"}')
    if is_deleted:
        state.replay(encode_key(LogKey(KeyType.DELETE_SUBJECT, "a")), b'{"subject":"a","version":1}')
    return state


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_undoing_changes_nothing_for_readers_of_committed_records(key: bytes, is_deleted: bool) -> None:
    state = _state(is_deleted=is_deleted)
    records = undo(state, [key])
    assert records[0].key == key
    for record in records:
        state.replay(*record)
    assert state.image() == _state(is_deleted=is_deleted).image()


def test_what_a_clear_removed_is_deleted_by_its_keys_too() -> None:
    state = _state(is_deleted=False)
    state.replay(encode_key(LogKey(KeyType.CLEAR_SUBJECT, "a")), b'{"subject":"a"}')
    assert "a" not in state.subjects
    assert [record.key for record in state.leftover_tombstones()] == [A1, OLDER_A1]
