"""Which batches belong to aborted transactions, and which markers are still needed.

A marker is needed while a batch of its transaction is in the log: without the abort marker a reader would not know
where the aborted transaction ends, and without it its records would look committed. So a pass notes for which
transactions it has met data, and asks at the marker. The pass that removes an aborted transaction's records has met
them; only the next one finds the marker alone and starts the time after which it goes.

A transaction that is not listed as aborted counts as committed: nothing undecided is ever compacted.
"""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.storage.txn_index import AbortedTransaction


class Transactions:
    """What a pass over the log, from its beginning and in order, knows of transactions."""

    __slots__ = ("_aborted", "_committed", "_met")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        """By producer, latest first, so that those the pass has left behind are popped off the end."""
        for entry in sorted(set(aborted), key=lambda entry: entry.first_offset, reverse=True):
            self._aborted.setdefault(entry.producer_id, []).append(entry)
        self._met: set[AbortedTransaction] = set()
        self._committed: set[int] = set()

    def is_aborted(self, producer_id: int, base_offset: int) -> bool:
        """Note a transactional data batch; whether its transaction was aborted."""
        entry = self._entry(producer_id, base_offset)
        if entry is not None and entry.first_offset <= base_offset:
            self._met.add(entry)
            return True
        self._committed.add(producer_id)
        return False

    def end_aborted(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The transaction that the abort marker at ``offset`` ends, if batches of it were met: the marker is needed."""
        entry = self._entry(producer_id, offset)
        if entry is None or entry.last_offset != offset or entry not in self._met:
            return None
        self._met.discard(entry)
        return entry

    def end_committed(self, producer_id: int) -> bool:
        """Whether batches were met of the transaction that a commit marker ends: the marker is needed."""
        if producer_id in self._committed:
            self._committed.discard(producer_id)
            return True
        return False

    def _entry(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The producer's first aborted transaction that does not end before ``offset``."""
        entries = self._aborted.get(producer_id)
        if entries is None:
            return None
        while entries and entries[-1].last_offset < offset:
            entries.pop()
        return entries[-1] if entries else None
