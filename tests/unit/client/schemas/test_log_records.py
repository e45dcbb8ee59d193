"""The bytes of ``_schemas`` are those of Confluent's registry, and what cannot be read stops nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.schemas.log_records import (
    KeyType,
    LogKey,
    UnreadableRecord,
    decode_json,
    decode_key,
    encode_json,
    encode_key,
)
from millbeck.registry.state import RegistryState

KEYS = {
    b'{"keytype":"SCHEMA","subject":"orders-value","version":3,"magic":1}': LogKey(KeyType.SCHEMA, "orders-value", 3),
    b'{"keytype":"CONFIG","subject":null,"magic":0}': LogKey(KeyType.CONFIG),
    b'{"keytype":"MODE","subject":"orders-value","magic":0}': LogKey(KeyType.MODE, "orders-value"),
    b'{"keytype":"CONTEXT","tenant":"default","context":".lab","magic":0}': LogKey(KeyType.CONTEXT, ".lab"),
    b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}': LogKey(KeyType.DELETE_SUBJECT, "a"),
    b'{"keytype":"CLEAR_SUBJECT","subject":"a","magic":0}': LogKey(KeyType.CLEAR_SUBJECT, "a"),
    b'{"keytype":"NOOP","magic":0}': LogKey(KeyType.NOOP),
}


@pytest.mark.parametrize(("raw", "key"), KEYS.items(), ids=lambda each: getattr(each, "keytype", None))
def test_keys_have_the_bytes_of_confluents_registry(raw: bytes, key: LogKey) -> None:
    assert encode_key(key) == raw
    assert decode_key(raw) == key


def test_keys_of_older_releases_mean_the_same() -> None:
    older = b'{"magic":0,"version":3,"keytype":"SCHEMA","subject":"orders-value"}'
    assert decode_key(older) == LogKey(KeyType.SCHEMA, "orders-value", 3)


UNREADABLE = {
    "not JSON": b"orders",
    "not an object": b"[1]",
    "no type": b'{"subject":"a","magic":0}',
    "a type of another program": b'{"keytype":"TABLE","subject":"a","magic":0}',
    "a later magic": b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":2}',
    "no subject": b'{"keytype":"SCHEMA","version":1,"magic":1}',
    "null as subject": b'{"keytype":"SCHEMA","subject":null,"version":1,"magic":1}',
    "version 0": b'{"keytype":"SCHEMA","subject":"a","version":0,"magic":1}',
    "a version that is true": b'{"keytype":"SCHEMA","subject":"a","version":true,"magic":1}',
    "deep nesting": b"[" * 100_000,
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_no_registry_writes_is_counted_and_passed_over(raw: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        decode_key(raw)
    state = RegistryState()
    before = state.image()
    state.replay(raw, b'{"id":1,"schema":"x"}')
    assert state.unreadable_count == 1
    assert state.image() == before


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans()))
def test_json_is_read_as_it_was_written(members: dict[str, object]) -> None:
    assert decode_json(encode_json(members)) == members


def test_json_is_printed_as_jackson_prints_it() -> None:
    assert encode_json({"a": "é\u001f\\u001f\n"}) == '{"a":"é\\u001F\\\\u001f\\n"}'.encode()
