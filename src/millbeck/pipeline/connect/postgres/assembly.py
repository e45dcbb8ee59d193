"""The stream's messages to whole transactions, ready to be put into shares.

A transaction is kept as the bytes that a share has. Tables that are not captured leave nothing behind, and a
transaction without anything for the log only moves the position. A transaction that grows beyond
`TRANSACTION_BYTES_MAX` goes on in a spool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from millbeck.pipeline.connect.postgres.filters import CaptureFilter, NameFilter
from millbeck.pipeline.connect.postgres.pgoutput import (
    BEGIN,
    COMMIT,
    MESSAGE,
    ORIGIN,
    RELATION,
    ROW_KINDS,
    TRUNCATE,
    TYPE,
    Begin,
    Commit,
    LogicalMessage,
    Relation,
    Truncate,
    message_of,
    relation_of,
)
from millbeck.pipeline.connect.postgres.replication_frames import ProtocolError
from millbeck.pipeline.connect.postgres.share import ENTRY_OVERHEAD, entry_of
from millbeck.pipeline.connect.postgres.tables import Table, TableId

TRANSACTION_BYTES_MAX: Final = 16 << 20
_SHAPES_MAX: Final = 100_000
_NAMES: Final = {b"I"[0]: "INSERT", b"U"[0]: "UPDATE", b"D"[0]: "DELETE", TRUNCATE: "TRUNCATE", MESSAGE: "MESSAGE"}


class Spool(Protocol):
    """Takes the entries of a transaction that is too large for memory."""

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def finish(self) -> None: ...

    def discard(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What a transaction has for the log. ``end_lsn`` is where the stream goes on behind it."""

    commit_lsn: int
    end_lsn: int
    lsn: int
    transaction_id: int | None
    time_us: int | None
    message_type: str
    shapes: frozenset[int]
    entries: bytes = b""
    spool: Spool | None = None
    signals: tuple[tuple[int, bytes], ...] = ()

    @property
    def size(self) -> int:
        return len(self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfRead:
    """A transaction of which another worker has written a part: changes up to a position, and at that position this
    many.
    """

    transaction_id: int
    lsn: int
    count: int = 1


@dataclass(slots=True)
class _Open:
    begin: Begin
    begin_entry: bytes
    parts: list[bytes] = field(default_factory=list)
    size: int = 0
    last_lsn: int = 0
    last_kind: int = 0
    shapes: set[int] = field(default_factory=set)
    spool: Spool | None = None
    signals: list[tuple[int, bytes]] = field(default_factory=list)
    count_at_lsn: int = 0


class TransactionAssembler:
    """Takes messages in the order of the stream. `shapes` are the shapes of tables by number; a number keeps its
    meaning.
    """

    def __init__(
        self,
        capture: CaptureFilter,
        messages: NameFilter,
        describe: Callable[[Relation], Table],
        make_spool: Callable[[], Spool],
        half_read: HalfRead | None = None,
    ) -> None:
        self._capture = capture
        self._messages = messages
        self._describe = describe
        self._make_spool = make_spool
        self._half_read = half_read
        self.shapes: dict[int, Table] = {}
        self._numbers: dict[Table, int] = {}
        self._relations: dict[int, int | None] = {}
        self._signal_shapes: set[int] = set()
        self._open: _Open | None = None

    @property
    def is_inside(self) -> bool:
        """Whether a transaction has begun and not ended."""
        return self._open is not None

    def close(self) -> None:
        """Give up the transaction that has not ended."""
        if self._open is not None and self._open.spool is not None:
            self._open.spool.discard()
        self._open = None

    def feed(self, lsn: int, message: bytes) -> Transaction | None:
        """Take a message; the transaction that ends with it, if it has anything for the log. Raises `ProtocolError`."""
        kind = message[0] if message else 0
        if kind in ROW_KINDS:
            shape = self._shape(relation_of(message))
            if shape is not None:
                self._add(lsn, kind, shape, message)
            return None
        if kind == BEGIN:
            self._begin(lsn, message)
        elif kind == COMMIT:
            return self._commit(lsn, message)
        elif kind == RELATION:
            self._relation(message)
        elif kind == TRUNCATE:
            found = message_of(message)
            assert isinstance(found, Truncate)
            for relation in found.relations:
                shape = self._shape(relation)
                if shape is not None:
                    self._add(lsn, kind, shape, message)
        elif kind == MESSAGE:
            return self._logical_message(lsn, message)
        elif kind == ORIGIN:
            opened = self._inside()
            opened.begin_entry += entry_of(lsn, 0, message)
        elif kind != TYPE:
            message_of(message)  # which says what is wrong with it
        return None

    def _inside(self) -> _Open:
        if self._open is None:
            raise ProtocolError("the replication stream has a change outside a transaction")
        return self._open

    def _shape(self, relation: int) -> int | None:
        """The number of a table's shape; None when its changes are not for the log."""
        try:
            return self._relations[relation]
        except KeyError:
            raise ProtocolError(f"the replication stream has a change of the table {relation}, not described") from None

    def _relation(self, message: bytes) -> None:
        found = message_of(message)
        assert isinstance(found, Relation)
        place = TableId(found.schema, found.name)
        if not self._capture.needs_table(place):
            self._relations[found.oid] = None
            return
        table = self._describe(found)
        number = self._numbers.get(table)
        if number is None:
            if len(self._numbers) >= _SHAPES_MAX:
                raise ProtocolError(f"tables have changed {_SHAPES_MAX} times since the stream was opened")
            number = self._numbers[table] = len(self._numbers) + 1
            self.shapes[number] = table
            if str(place) == self._capture.signal_table:
                self._signal_shapes.add(number)
        self._relations[found.oid] = number

    def _begin(self, lsn: int, message: bytes) -> None:
        if self._open is not None:
            raise ProtocolError("the replication stream has a transaction inside a transaction")
        begin = message_of(message)
        assert isinstance(begin, Begin)
        self._open = _Open(begin, entry_of(lsn, 0, message))

    def _add(self, lsn: int, kind: int, shape: int, message: bytes) -> None:
        opened = self._inside()
        if self._was_written(opened, lsn):
            return
        if shape in self._signal_shapes:
            opened.signals.append((shape, message))
            if not self._capture.has_table(self.shapes[shape].id):
                return
        if not opened.parts and opened.spool is None:
            opened.parts.append(opened.begin_entry)
            opened.size = len(opened.begin_entry)
        opened.parts.append(entry_of(lsn, shape, message))
        opened.size += len(message) + ENTRY_OVERHEAD
        opened.last_lsn, opened.last_kind = lsn, kind
        if shape:
            opened.shapes.add(shape)
        if opened.size > TRANSACTION_BYTES_MAX:
            self._spill(opened)

    def _was_written(self, opened: _Open, lsn: int) -> bool:
        """Whether the change is in the log already, written by a worker that did not keep transactions whole."""
        half = self._half_read
        if half is None or opened.begin.transaction_id != half.transaction_id:
            return False
        if lsn == half.lsn:
            opened.count_at_lsn += 1
            return opened.count_at_lsn <= half.count
        return lsn < half.lsn

    def _spill(self, opened: _Open) -> None:
        if opened.spool is None:
            opened.spool = self._make_spool()
        opened.spool.write(b"".join(opened.parts))
        opened.parts = []
        opened.size = 0

    def _logical_message(self, lsn: int, message: bytes) -> Transaction | None:
        found = message_of(message)
        assert isinstance(found, LogicalMessage)
        if found.prefix not in self._messages:
            return None
        if found.is_transactional:
            self._add(lsn, MESSAGE, 0, message)
            return None
        # The position behind it: commit records lie at other positions.
        return Transaction(
            commit_lsn=lsn,
            end_lsn=lsn + 1,
            lsn=lsn,
            transaction_id=None,
            time_us=None,
            message_type="MESSAGE",
            shapes=frozenset(),
            entries=entry_of(lsn, 0, message),
        )

    def _commit(self, lsn: int, message: bytes) -> Transaction | None:
        opened = self._inside()
        commit = message_of(message)
        assert isinstance(commit, Commit)
        self._open = None
        if self._half_read is not None and opened.begin.transaction_id == self._half_read.transaction_id:
            self._half_read = None
        if not opened.parts and opened.spool is None and not opened.signals:
            return None
        if opened.parts or opened.spool is not None:
            opened.parts.append(entry_of(lsn, 0, message))
        entries = b"".join(opened.parts)
        if opened.spool is not None:
            opened.spool.write(entries)
            opened.spool.finish()
            entries = b""
        made: dict[str, Any] = {"entries": entries, "spool": opened.spool, "signals": tuple(opened.signals)}
        return Transaction(
            commit_lsn=commit.commit_lsn,
            end_lsn=commit.end_lsn,
            lsn=opened.last_lsn or commit.end_lsn,
            transaction_id=opened.begin.transaction_id,
            time_us=opened.begin.commit_time_us,
            message_type=_NAMES.get(opened.last_kind, "COMMIT"),
            shapes=frozenset(opened.shapes),
            **made,
        )
