"""Small table histories for the checkers of compaction."""

from __future__ import annotations

from millbeck.simulation.histories.table_history import TableHistory, value_of

RETENTION_MS = 1000


def table(*writes: str) -> TableHistory:
    """A history with these writes at offsets 0, 1, ...: ``k`` sets a key, ``-k`` deletes it, at 10 ms per offset."""
    history = TableHistory(RETENTION_MS)
    for offset, text in enumerate(writes):
        value = value_of(text.lstrip("-"), str(offset), is_tombstone=text.startswith("-"))
        history.send("p", "0", value).acknowledged(offset)
        history.acknowledged_at(value, 10 * offset)
    return history


def records(history: TableHistory, *offsets: int) -> list[tuple[int, str]]:
    """What is left of the writes."""
    return [(write.offset, write.value) for write in history.writes("0") if write.offset in offsets]
