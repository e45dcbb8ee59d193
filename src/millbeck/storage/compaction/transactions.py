"""Determines which batches belong to aborted transactions, and which transaction markers are still needed.

A marker is needed while a batch of its transaction is in the log: without the abort marker a reader would not know
where the aborted transaction ends, and its records would look committed. So a pass remembers the transactions of which
it has seen data, and looks them up at the marker. The pass that removes an aborted transaction's records has still
seen them; only the next pass finds the marker alone and sets its delete horizon.

A transaction that is not listed as aborted counts as committed: no undecided transaction is ever compacted.
"""

from __future__ import annotations

from collections.abc import Iterable

from millbeck.storage.txn_index import AbortedTransaction


class CleanedTransactionMetadata:
    """Transaction state of one pass over the log, in order and from its beginning."""

    __slots__ = ("_aborted", "_committed", "_met")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        """Aborted transactions by producer id, latest first, so that those before the current position are popped off
        the end."""
        for entry in sorted(set(aborted), key=lambda entry: entry.first_offset, reverse=True):
            self._aborted.setdefault(entry.producer_id, []).append(entry)
        self._met: set[AbortedTransaction] = set()
        self._committed: set[int] = set()

    def is_aborted(self, producer_id: int, base_offset: int) -> bool:
        """Record that a transactional data batch was seen; returns whether its transaction was aborted."""
        entry = self._entry(producer_id, base_offset)
        if entry is not None and entry.first_offset <= base_offset:
            self._met.add(entry)
            return True
        self._committed.add(producer_id)
        return False

    def end_aborted(self, producer_id: int, offset: int) -> AbortedTransaction | None:
        """The transaction that the abort marker at ``offset`` ends, if batches of it were seen: then the marker is
        needed."""
        entry = self._entry(producer_id, offset)
        if entry is None or entry.last_offset != offset or entry not in self._met:
            return None
        self._met.discard(entry)
        return entry

    def end_committed(self, producer_id: int) -> bool:
        """Whether batches of the transaction that a commit marker ends were seen: then the marker is needed."""
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
