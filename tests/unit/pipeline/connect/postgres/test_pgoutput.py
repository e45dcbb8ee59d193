"""Messages of the replication stream, whole, cut off and mutated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.connect.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Cell,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    RelationColumn,
    ReplicaIdentity,
    Truncate,
    TypeName,
    Update,
    message_of,
    relation_of,
)
from millbeck.pipeline.connect.postgres.replication_frames import ProtocolError
from tests.unit.pipeline.connect.postgres import messages

_CELLS: list[Cell] = [b"7", None, UNCHANGED, b""]
MESSAGES: dict[str, tuple[bytes, Message]] = {
    "begin": (messages.begin(99, 7, 5), Begin(99, 5, 7)),
    "commit": (messages.commit(99, 120, 5), Commit(99, 120, 5)),
    "relation": (
        messages.relation(16, "public", "orders", [("id", 23, -1, True), ("note", 25, -1, False)]),
        Relation(
            16,
            "public",
            "orders",
            ReplicaIdentity.DEFAULT,
            (RelationColumn("id", 23, -1, True), RelationColumn("note", 25, -1, False)),
        ),
    ),
    "relation of the system": (
        messages.relation(16, "", "pg_x", [], "n"),
        Relation(16, "pg_catalog", "pg_x", ReplicaIdentity.NOTHING, ()),
    ),
    "type": (b"Y\0\0\0\x09public\0mood\0", TypeName(9, "public", "mood")),
    "origin": (messages.origin("far", 8), Origin(8, "far")),
    "insert": (messages.insert(16, *_CELLS), Insert(16, _CELLS)),
    "update": (messages.update(16, _CELLS), Update(16, None, False, _CELLS)),
    "update of a key": (messages.update(16, _CELLS, [b"6"]), Update(16, [b"6"], False, _CELLS)),
    "update with all": (messages.update(16, _CELLS, [b"6"], b"O"), Update(16, [b"6"], True, _CELLS)),
    "delete": (messages.delete(16, [b"6", None]), Delete(16, [b"6", None], False)),
    "delete with all": (messages.delete(16, [b"6"], b"O"), Delete(16, [b"6"], True)),
    "truncate": (messages.truncate(16, 17, options=3), Truncate((16, 17), True, True)),
    "message": (messages.logical_message("p", b"\0c", lsn=3), LogicalMessage(True, 3, "p", b"\0c")),
}


@pytest.mark.parametrize(("data", "expected"), MESSAGES.values(), ids=MESSAGES.keys())
def test_each_kind_of_message_is_read(data: bytes, expected: Message) -> None:
    assert message_of(data) == expected


@pytest.mark.parametrize(("data", "_"), MESSAGES.values(), ids=MESSAGES.keys())
def test_a_message_that_is_cut_off_or_too_long_is_an_error(data: bytes, _: Message) -> None:
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            message_of(data[:size])
    with pytest.raises(ProtocolError):
        message_of(data + b"\0")


@given(st.sampled_from([data for data, _ in MESSAGES.values()]), st.data())
def test_mutated_messages_are_read_or_refused(data: bytes, draw: st.DataObject) -> None:
    place = draw.draw(st.integers(0, len(data) - 1))
    mutated = data[:place] + bytes((draw.draw(st.integers(0, 255)),)) + data[place + 1 :]
    try:
        found: object = message_of(mutated)
    except ProtocolError as error:
        found = error
    assert found is not None


@pytest.mark.parametrize("count", [1665, 65535])
def test_no_row_has_more_columns_than_a_table_can_have(count: int) -> None:
    with pytest.raises(ProtocolError, match=r"row of|truncated"):
        message_of(b"I\0\0\0\x10N" + count.to_bytes(2, "big") + b"n" * count)


def test_the_table_of_a_change_is_found_without_reading_its_row() -> None:
    assert relation_of(messages.insert(70_000, b"1")) == 70_000
    with pytest.raises(ProtocolError):
        relation_of(b"I\0\0")
