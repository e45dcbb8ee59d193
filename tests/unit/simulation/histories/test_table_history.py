"""Writes as the history of a table knows them."""

from __future__ import annotations

from millbeck.simulation.histories.table_history import TableHistory, TableWrite, key_of, value_of


def test_a_value_tells_its_key_and_whether_it_deletes() -> None:
    value, tombstone = value_of("k1", "p-1", is_tombstone=False), value_of("k1", "p-2", is_tombstone=True)
    assert key_of(value) == key_of(tombstone) == "k1"
    assert [TableWrite(0, each, 0).is_tombstone for each in (value, tombstone)] == [False, True]
    assert TableWrite(0, value, 0).key == "k1"


def test_acknowledged_writes_come_in_the_order_of_the_log() -> None:
    history = TableHistory(1000)
    for offset, (producer, key) in zip((4, 2, None), (("a", "x"), ("b", "y"), ("b", "z")), strict=True):
        send = history.send(producer, "0", value_of(key, producer, is_tombstone=False))
        if offset is not None:
            send.acknowledged(offset)
            history.acknowledged_at(send.value, 100 + offset)
    assert [(write.offset, write.key, write.acknowledged_ms) for write in history.writes("0")] == [
        (2, "y", 102),
        (4, "x", 104),
    ]
    assert history.writes("1") == []
    assert history.partitions() == ["0"]
