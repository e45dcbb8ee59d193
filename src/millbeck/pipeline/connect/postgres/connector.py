"""The connector: on the worker it owns the stream and the snapshot, in tasks it makes records of shares.

Positions alone say what it is doing: without an offset it takes a snapshot (or not, as ``snapshot.mode`` says), with
one that names a snapshot under way it carries that on, with any other it streams.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    Plan,
    RejectedRecord,
    SourceConnector,
    SourceItem,
    SourcePositions,
    SourceProgress,
    SourceShare,
)
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, RetriableError
from millbeck.pipeline.connect.postgres.assembly import Transaction, TransactionAssembler
from millbeck.pipeline.connect.postgres.catalog import Catalog, Connection
from millbeck.pipeline.connect.postgres.changes import ChangeReader, RefusedChange
from millbeck.pipeline.connect.postgres.checks import problems_of
from millbeck.pipeline.connect.postgres.connection import connected, one_line, replicating, translated
from millbeck.pipeline.connect.postgres.declared import POSTGRES_SOURCE
from millbeck.pipeline.connect.postgres.incremental import IncrementalReading, forgotten, state_of
from millbeck.pipeline.connect.postgres.lsn import lsn_text
from millbeck.pipeline.connect.postgres.offsets import (
    READ_AT,
    half_read,
    is_snapshot_under_way,
    resume_lsn,
)
from millbeck.pipeline.connect.postgres.settings import PostgresSettings
from millbeck.pipeline.connect.postgres.share import (
    HEARTBEAT,
    ShareHeader,
    StreamOffset,
    entries_of,
    entry_of,
    header_of,
)
from millbeck.pipeline.connect.postgres.signals import STATE, State, signal_of, state_after
from millbeck.pipeline.connect.postgres.slots import (
    Slot,
    SlotInUse,
    captured_tables,
    create_slot,
    drop_slot,
    ensure_publication,
    slot_of,
    slot_problem,
    start_replication,
    take_over,
)
from millbeck.pipeline.connect.postgres.snapshot_reach import SnapshotReach
from millbeck.pipeline.connect.postgres.snapshot_reading import chunk_items
from millbeck.pipeline.connect.postgres.snapshotting import Snapshotting
from millbeck.pipeline.connect.postgres.spool import SpoolDirectory, spooled_entries
from millbeck.pipeline.connect.postgres.stream import IDLE_BYTES, ReplicationStream

SHARE_BYTES_MAX: Final = 16 << 20
_TAKE_OVER_TRIES: Final = 20
_TAKE_OVER_WAIT_S: Final = 0.25
_RECENT_MAX: Final = 4096
_HEALTH_INTERVAL_S: Final = 30.0
WAL_STATUSES: Final = ("reserved", "extended", "unreserved", "lost")
"""In metrics, the place in this list."""

_LOG: Final = logging.getLogger(__name__)


class PostgresSource(SourceConnector):
    """Changes of a PostgreSQL database."""

    declared = POSTGRES_SOURCE

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._settings = PostgresSettings.of(values, context.settings)
        self._reader: ChangeReader | None = None
        self._stream: ReplicationStream | None = None
        self._snapshotting: Snapshotting | None = None
        self._reading: IncrementalReading | None = None
        self._recent: deque[int] = deque(maxlen=_RECENT_MAX)
        self._admin: Connection | None = None
        self._spools = SpoolDirectory(values["millbeck.spool.directory"], context.name)
        self._wants_snapshot = False
        self._next_heartbeat = 0.0
        self._next_health = 0.0
        self.slot: Slot | None = None
        """The slot as it was last seen."""

    def check(self) -> Iterable[SettingProblem]:
        return problems_of(self.values, self._settings, self.context.name)

    # on the worker

    def start(self) -> None:
        self._wants_snapshot = self.values["snapshot.mode"] == "always"
        self._spools.clear()

    def stop(self) -> None:
        self._close_stream()
        if self._snapshotting is not None:
            self._snapshotting.close()
            self._snapshotting = None
        if self.values["slot.drop.on.stop"]:
            try:
                drop_slot(self._connection(), self.values["slot.name"])
            except (psycopg.Error, ConnectError) as error:
                _LOG.warning("slot.drop.on.stop: %s", error)
        self._close_connection()
        self._spools.clear()

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        with self._translated():
            offset = positions.get(self._settings.partition)
            if self._needs_snapshot(offset):
                found = self._snapshot().plan(positions, offset, restart=self._wants_snapshot)
                self._wants_snapshot = False
                return found
            if self._snapshotting is not None:
                self._snapshotting.close()
                self._snapshotting = None
            if self.values["snapshot.mode"] == "initial_only" and offset is not None and offset.get("snapshot"):
                return Plan()
            return self._stream_plan(offset, positions)

    def _needs_snapshot(self, offset: Mapping[str, Any] | None) -> bool:
        mode = self.values["snapshot.mode"]
        if mode in ("no_data", "never"):
            return False
        if self._wants_snapshot or offset is None or is_snapshot_under_way(offset):
            return True
        if mode == "when_needed" and self._stream is None:
            return self._slot_problem(self._seen_slot(), resume_lsn(offset)) is not None
        return False

    def _snapshot(self) -> Snapshotting:
        if self._snapshotting is None:
            self._close_stream()
            self._snapshotting = Snapshotting(
                self._settings,
                self.context,
                lambda: ensure_publication(self._connection(), self.values, self._settings.capture),
            )
        return self._snapshotting

    # the stream

    def _stream_plan(self, offset: Mapping[str, Any] | None, positions: SourcePositions) -> Plan[SourceShare]:
        if self._stream is not None:
            try:
                self._stream.raise_error()
            except Exception:
                # What ended the stream has likely ended the other connection.
                self._close_stream()
                self._close_connection()
                raise
        if self._stream is None:
            self._stream = self._opened(offset)
        stream = self._stream
        committed = stream.start_lsn if offset is None else resume_lsn(offset)
        stream.confirm(committed)
        self._look_at_slot()
        start = dict(offset or {})
        reading = state_of(offset)
        if reading is None:
            self._close_reading()
        else:
            found = self._read_anew(start, reading, positions, stream)
            if found is not None:
                return found
        limit = None if self._reading is None else self._reading.limit
        transactions = stream.ready(SHARE_BYTES_MAX, limit)
        if transactions:
            if self._reading is not None:
                self._reading.note(transactions)
            self._recent.extend(each.transaction_id for each in transactions if each.transaction_id is not None)
            share = self._changes(start, transactions)
            return Plan(shares=(share,), again_s=0)
        if reading is not None:
            stream.ask_for_position()
            return Plan(again_s=0.2)
        idle = stream.idle_lsn
        is_due = self._is_heartbeat_due()
        if idle is not None and (is_due or idle - committed >= IDLE_BYTES):
            return Plan(shares=(self._idle(start, idle, has_heartbeat=is_due),))
        return Plan()

    def _read_anew(
        self, start: Mapping[str, Any], state: State, positions: SourcePositions, stream: ReplicationStream
    ) -> Plan[SourceShare] | None:
        """The next chunks of an incremental snapshot, if the stream has come to where they belong."""
        if self._reading is None:
            self._reading = IncrementalReading(self._settings, self.context, stream, self._recent)
        found = self._reading.shares(state, positions)
        if found is None:
            return None
        if isinstance(found, tuple):
            return Plan(shares=found, again_s=0)
        # A table is done.
        self._close_reading()
        offset = {name: value for name, value in start.items() if name != STATE}
        if found["tables"]:
            offset[STATE] = found
        items = [(self._settings.partition, offset), *forgotten(positions, self._settings.naming.prefix, found)]
        return Plan(shares=(SourceShare(payload=("progress", items)),), again_s=0)

    def _close_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _opened(self, offset: Mapping[str, Any] | None) -> ReplicationStream:
        values, name = self.values, self.context.name
        admin = self._connection()
        ensure_publication(admin, values, self._settings.capture)
        lsn = self._start_lsn(offset)
        catalog_connection = connected(values, name)
        replication = None
        try:
            replication = replicating(values, name)
            for attempt in range(_TAKE_OVER_TRIES):
                take_over(admin, values["slot.name"], name)
                try:
                    start_replication(
                        replication, slot=values["slot.name"], publication=values["publication.name"], lsn=lsn
                    )
                    break
                except SlotInUse:
                    if attempt == _TAKE_OVER_TRIES - 1:
                        raise
                    time.sleep(_TAKE_OVER_WAIT_S)
            assembler = TransactionAssembler(
                self._settings.capture,
                self._settings.messages,
                Catalog(catalog_connection).described,
                self._spools.make,
                half_read(offset) if offset is not None else None,
            )
            interval = values["heartbeat.interval.ms"] / 1000
            stream = ReplicationStream(
                replication,
                assembler,
                start_lsn=lsn,
                wake=self.context.wake,
                status_interval_s=values["status.update.interval.ms"] / 1000,
                wake_interval_s=min(interval or _HEALTH_INTERVAL_S, _HEALTH_INTERVAL_S),
                release=catalog_connection.close,
            )
        except BaseException:
            if replication is not None:
                replication.finish()
            catalog_connection.close()
            raise
        _LOG.info("%s: streaming from %s", name, lsn_text(lsn))
        stream.start()
        return stream

    def _start_lsn(self, offset: Mapping[str, Any] | None) -> int:
        """Where the stream begins; the slot is made if there is none and nothing is lost by it. Raises `ConfigError`
        when changes are missing.
        """
        name = self.values["slot.name"]
        slot = self._seen_slot()
        if slot is None and offset is None:
            replication = replicating(self.values, self.context.name)
            try:
                made = create_slot(replication, name, temporary=False, failover=self.values["slot.failover"])
            finally:
                replication.finish()
            return made.lsn
        if offset is None:
            assert slot is not None
            problem = slot_problem(slot, name, self.values["database.dbname"])
            if problem is not None or slot.confirmed_lsn is None:
                raise ConfigError(f"slot.name: {problem or self._lost(name)}")
            return slot.confirmed_lsn
        committed = resume_lsn(offset)
        problem = self._slot_problem(slot, committed)
        if problem is not None:
            raise ConfigError(problem)
        assert slot is not None
        assert slot.confirmed_lsn is not None
        if self.values["offset.mismatch.strategy"] in ("trust_slot", "trust_greater_lsn"):
            return max(committed, slot.confirmed_lsn)
        return committed

    def _slot_problem(self, slot: Slot | None, committed: int) -> str | None:
        """Why the stream cannot go on behind ``committed`` without a gap."""
        name = self.values["slot.name"]
        if slot is None:
            return (
                f"slot.name: the slot {name} is gone, and with it what changed since {lsn_text(committed)}: reset the "
                "connector's offsets to read the tables again, or set snapshot.mode=when_needed"
            )
        wrong = slot_problem(slot, name, self.values["database.dbname"])
        if wrong is not None:
            return f"slot.name: {wrong}"
        if slot.confirmed_lsn is None or slot.is_lost:
            return f"slot.name: {self._lost(name)}"
        if slot.confirmed_lsn > committed and self.values["offset.mismatch.strategy"] == "trust_offset":
            return (
                f"slot.name: the slot {name} is at {lsn_text(slot.confirmed_lsn)}, beyond {lsn_text(committed)} in the "
                "log: it was made again or moved by somebody else, and what changed between is missing. Reset the "
                "connector's offsets to read the tables again, set snapshot.mode=when_needed, or "
                "offset.mismatch.strategy=trust_slot to go on with the gap"
            )
        return None

    @staticmethod
    def _lost(name: str) -> str:
        return (
            f"the server has removed the log that the slot {name} was to keep (wal_status lost): drop the slot and "
            "reset the connector's offsets, or set snapshot.mode=when_needed; raise max_slot_wal_keep_size "
            "of the server"
        )

    def _seen_slot(self) -> Slot | None:
        self.slot = slot_of(self._connection(), self.values["slot.name"])
        return self.slot

    def _look_at_slot(self) -> None:
        now = time.monotonic()
        if now < self._next_health:
            return
        self._next_health = now + _HEALTH_INTERVAL_S
        slot = self._seen_slot()
        if slot is None or slot.wal_status in ("unreserved", "lost"):
            state = "gone" if slot is None else slot.wal_status
            _LOG.warning("%s: the slot %s is %s", self.context.name, self.values["slot.name"], state)

    def _is_heartbeat_due(self) -> bool:
        interval = self.values["heartbeat.interval.ms"] / 1000
        now = time.monotonic()
        if not interval or now < self._next_heartbeat:
            return False
        self._next_heartbeat = now + interval
        query = self.values["heartbeat.action.query"]
        if query:
            try:
                self._connection().execute(query)
            except psycopg.Error as error:
                _LOG.warning("heartbeat.action.query: %s", one_line(str(error)))
        return True

    def _changes(self, start: Mapping[str, Any], transactions: Sequence[Transaction]) -> SourceShare:
        assert self._stream is not None
        last = transactions[-1]
        shapes = self._stream.assembler.shapes
        used = sorted(set().union(*(transaction.shapes for transaction in transactions)))
        end = StreamOffset(
            commit_lsn=last.end_lsn,
            lsn=last.end_lsn,
            transaction_id=last.transaction_id,
            time_us=last.time_us,
            message_type=last.message_type,
            read_at=_still_read(start, last.end_lsn),
        ).as_json()
        state = self._signalled(start.get(STATE), transactions)
        if state is not None:
            end[STATE] = state
        header = ShareHeader(
            tables={shape: shapes[shape] for shape in used},
            start=start,
            end=end,
            now_ms=time.time_ns() // 1_000_000,
        )
        if last.spool is not None:
            spool = last.spool
            return SourceShare(payload=("spool", header.as_bytes(), spool.path, spool.size), is_long=True)
        entries = [transaction.entries for transaction in transactions]
        if self._is_heartbeat_due():
            entries.append(entry_of(last.end_lsn, 0, bytes((HEARTBEAT,))))
        return SourceShare(payload=("changes", b"".join((header.as_bytes(), *entries))))

    def _signalled(self, state: State | None, transactions: Sequence[Transaction]) -> State | None:
        """What is to be read anew after the signals of these transactions."""
        assert self._stream is not None
        for transaction in transactions:
            for shape, message in transaction.signals:
                signal = signal_of(self._stream.assembler.shapes[shape], message)
                if signal is not None:
                    via_root = self.values["publish.via.partition.root"]
                    captured = captured_tables(self._connection(), self._settings.capture, via_root=via_root)
                    state = state_after(state, signal, captured, self._settings.capture, lsn=transaction.end_lsn)
        return state

    def _idle(self, start: Mapping[str, Any], lsn: int, *, has_heartbeat: bool) -> SourceShare:
        """A share without changes: the position, and a heartbeat if one is due."""
        end = StreamOffset(
            commit_lsn=lsn, lsn=lsn, time_us=start.get("ts_usec"), read_at=_still_read(start, lsn)
        ).as_json()
        if start.get(STATE) is not None:
            end[STATE] = start[STATE]
        header = ShareHeader(tables={}, start=start, end=end, now_ms=time.time_ns() // 1_000_000)
        entries = entry_of(lsn, 0, bytes((HEARTBEAT,))) if has_heartbeat else b""
        return SourceShare(payload=("changes", header.as_bytes() + entries))

    def _close_stream(self) -> None:
        self._close_reading()
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _connection(self) -> Connection:
        """A connection for what is asked now and then."""
        if self._admin is not None and self._admin.closed:
            self._admin = None
        if self._admin is None:
            self._admin = connected(self.values, self.context.name)
        return self._admin

    def _close_connection(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self._close_connection()
            raise translated(error, self.values) from error

    def gauges(self) -> Mapping[str, float]:
        """The slot as it was last seen, and what the stream holds."""
        found: dict[str, float] = {}
        slot, stream = self.slot, self._stream
        if slot is not None:
            found["slot_retained_bytes"] = slot.retained_bytes or 0
            found["slot_wal_status"] = WAL_STATUSES.index(slot.wal_status) if slot.wal_status in WAL_STATUSES else 3
        if stream is not None:
            found["stream_held_bytes"] = stream.held_bytes
            found["stream_lag_bytes"] = stream.lag_bytes
        return found

    # in tasks

    def read(self, share: SourceShare) -> Iterator[SourceItem]:
        kind, *rest = share.payload
        if self._reader is None:
            self._reader = ChangeReader(self._settings)
        reader = self._reader
        if kind == "progress":
            for partition, offset in rest[0]:
                yield SourceProgress(partition, offset)
        elif kind == "chunk":
            yield from chunk_items(reader, self._settings, self.context.name, rest[0])
        elif kind in ("changes", "spool"):
            header, position = header_of(rest[0])
            entries = entries_of(rest[0], position) if kind == "changes" else spooled_entries(rest[1], rest[2])
            yield from reader.records(header, entries, self._refused)
            yield SourceProgress(self._settings.partition, header.end)
        else:
            raise RetriableError(f"a share of an unknown kind {kind!r}")

    def _refused(self, refused: RefusedChange) -> RejectedRecord:
        return RejectedRecord(error=refused, topic=refused.topic, value=refused.raw)


def _still_read(start: Mapping[str, Any], lsn: int) -> Mapping[str, Any] | None:
    """What snapshots have seen, as long as it lies ahead."""
    reach = SnapshotReach.of(start.get(READ_AT))
    return reach.as_json() if reach.end > lsn else None
