"""What a connector is: a Python class with its settings declared, found by an entry point or built in.

    class LinesSource(SourceConnector):
        declared = ConnectorClass(
            name="shop.LinesSource", kind=ConnectorKind.SOURCE, doc="Lines of a file.",
            config_def=ConfigDef(ConfigKey(name="file", kind=STRING, doc="The file."), ...),
        )

        def plan(self, positions: SourcePositions) -> Plan[SourceShare]:            # on the worker
            position = positions.get({"file": self.values["file"]})
            ...
            return Plan(shares=(SourceShare(payload=(start, end)),), again_s=0)

        def read(self, share: SourceShare) -> Iterator[SourceRecord]:               # in a task
            start, end = share.payload
            ...

    [project.entry-points."millbeck.connectors"]        # pyproject.toml of the package
    LinesSource = "shop.lines:LinesSource"              # connector.class=LinesSource

A connector works in **turns**: *plan → job → commit*. The worker asks ``plan`` for shares, at most ``tasks.max`` of
them; a Spark job reads or writes each share in one task, in one Python process; the worker commits. Share number N of a
turn is task N of the connector. The next plan is asked for when all shares of the turn before have ended. Nothing is
kept between turns but positions in the log: whatever a plan needs, it must learn from the positions it is given.

**Objects.** One object of the class is on the worker, between `start` and `stop`; its methods are called on a thread,
one at a time, never on the event loop. Others are made from the same settings in the Python processes of Spark's tasks,
for ``read`` and ``write`` only; they are kept there for later turns of the same configuration, until `close`. Objects
are never pickled: what a task needs to know travels in the share, which is.

**A part that lives in the worker**, such as a replication stream, is opened in `start` and closed in `stop`, with
threads of its own if it needs them. It calls ``self.context.wake()``, from any thread, when there is something to plan.
``plan`` puts the raw bytes into shares, ``read`` decodes them in a task; what it cannot go on from raises from the next
``plan``. `SourceConnector.commit` tells what has been committed. What it holds in memory it must bound itself, and
plan again what was not committed.

**Errors.** What a method raises decides what happens:

- `RetriableError`, and every exception that is not a `ConnectError`: the other system is down, full or busy. The share
  is tried again with growing waits, for ever by default. Nothing goes to a dead-letter topic.
- `ConfigError`, and every other `ConnectError`: trying again cannot mend it (a wrong setting, a missing table, refused
  rights). The connector or the task fails at once; the message says what to do.
- A *record* that cannot be handled is handed to `SinkRecords.reject` by a sink, and given as `RejectedRecord` by a
  source: ``errors.tolerance`` decides whether the task fails or goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.declared import ConnectorClass, Delivery, SettingProblem
from millbeck.pipeline.connect.model.record import SinkRecord, SourceRecord

__all__ = [
    "Backlog",
    "Connector",
    "ConnectorContext",
    "OffsetRange",
    "Plan",
    "RejectedRecord",
    "SinkConnector",
    "SinkRecords",
    "SinkReport",
    "SinkShare",
    "SourceConnector",
    "SourceItem",
    "SourcePositions",
    "SourceProgress",
    "SourceReport",
    "SourceShare",
]

JsonObject = Mapping[str, Any]
"""Texts, numbers, booleans, null, lists and objects: what JSON can hold."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorContext:
    """Where a connector lives."""

    name: str
    """The connector's name; several connectors may be of one class."""
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """All settings as texts, those that the class does not declare too. Variables of config providers are resolved:
    these are not for logs."""
    tasks_max: int = 1
    client_settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of a client of the log that the worker works for: ``bootstrap.servers`` and security."""
    wake: Callable[[], None] = _nothing
    """On the worker: ask this connector for a plan soon. May be called from any thread, and as often as you like."""


class Connector:
    """What sources and sinks share. Derive from `SourceConnector` or `SinkConnector`."""

    declared: ClassVar[ConnectorClass]

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        """``values`` are the parsed settings that the class declares. Opens nothing: it may be the worker or a task."""
        self.values = values
        self.context = context

    def check(self) -> Iterable[SettingProblem]:
        """On the worker, before a configuration is taken: what is wrong with it in the other system (no such table, no
        such bucket, no right to read), each at its setting with how to mend it. It may take some seconds; what cannot
        be found out, because the other system is down, is no problem. The object is not started.
        """
        return ()

    def start(self) -> None:
        """On the worker: the connector begins to run there, or runs again after a failure."""

    def stop(self) -> None:
        """On the worker: it runs there no more (paused, stopped, moved, failed). Called once for each `start`, also for
        one that raised."""

    def gauges(self) -> Mapping[str, float]:
        """On the worker: numbers of its own for ``/metrics``, as ``millbeck_connect_NAME`` of this connector. They are
        asked for at any time between `start` and `stop`, on the event loop: they must be at hand.
        """
        return {}

    def close(self) -> None:
        """In a task's process: the object is not needed any more. Not called when the process is killed."""


# shares and plans


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceShare:
    """What one task reads in a turn; it is pickled to the task."""

    payload: Any = None
    """Whatever ``read`` needs: a range, a key interval, raw bytes (at most 16 MB travel well)."""
    key: str | None = None
    """What this share reads, such as a table's name. While the share of one key fails, those of other keys go on;
    without a key, the whole connector waits for the next attempt."""
    is_long: bool = False
    """It will take many seconds (a snapshot, catching up), so it must not travel with small shares of others."""


class OffsetRange(NamedTuple):
    """Offsets of a partition of the log, ``start`` inclusive, ``end`` exclusive. Not every offset has a record."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkShare:
    """What one task writes in a turn; it is pickled to the task. No two shares of a plan have the same partition."""

    ranges: tuple[OffsetRange, ...]
    payload: Any = None
    is_long: bool = False


S = TypeVar("S", SourceShare, SinkShare)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Generic[S]):
    """The shares of a turn, at most ``tasks.max``; none when there is nothing to do now."""

    shares: tuple[S, ...] = ()
    again_s: float | None = None
    """Ask again when this turn is over and at least this many seconds have passed since this plan; 0 is at once,
    because there is more. None: when something wakes the connector (`ConnectorContext.wake`, new records for a sink).
    """


# sources


class SourcePositions(Protocol):
    """The committed offsets of a source, by its source partitions. Offsets are what the connector's own records had as
    ``source_offset``, or what an administrator has set through the REST interface.
    """

    def get(self, partition: JsonObject) -> dict[str, Any] | None:
        """The offset of a partition; None when there is none."""

    def items(self) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
        """All partitions with their offsets."""


@dataclass(frozen=True, slots=True)
class SourceProgress:
    """A source partition has moved on without a record: a chunk without rows, a heartbeat that is not written. An
    offset of None forgets the partition."""

    partition: JsonObject
    offset: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRecord:
    """What the other system has there cannot be made a record. With ``errors.tolerance=all`` it is left out, and
    goes to the dead-letter topic as it is, if there is one; otherwise the task fails.
    """

    error: Exception
    topic: str | None = None
    key: bytes | None = None
    value: bytes | None = None
    source_partition: JsonObject | None = None
    source_offset: JsonObject | None = None


SourceItem = SourceRecord | SourceProgress | RejectedRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """The outcome of a share that is committed."""

    task: int
    share: SourceShare
    offsets: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = ()
    """The last offset of each source partition that has moved."""
    record_count: int = 0


class SourceConnector(Connector):
    """Reads from another system. Delivery is exactly once: the records of a share and the offsets that they bring are
    one transaction. What is not committed is read again, from the committed offsets.
    """

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        """On the worker: what there is to read after ``positions``, cut into shares. Bound them (some 10,000 records or
        16 MB each; a long one is cut by the next plan): what a turn has read is seen when it ends. A source partition
        belongs to one share only.
        """
        raise NotImplementedError

    def read(self, share: SourceShare) -> Iterator[SourceItem]:
        """In a task: the records of a share, in order. It must not have effects on the other system: it may be called
        again for the same share, also while an earlier call in a lost process has not ended.

        Records have ``source_partition`` and ``source_offset``, from where reading goes on after them. With
        ``transaction.boundary=connector``, a share has whole transactions of the other system.
        """
        raise NotImplementedError

    def commit(self, reports: Sequence[SourceReport]) -> None:
        """On the worker, after each turn: these shares are in the log, with their offsets. Here a replication slot is
        confirmed, or a queue's messages are acknowledged. It is not called for what a worker committed just before
        it died: what must be confirmed is also to be seen from the next plan's positions. An error here is retried
        with the next turn's, and does not undo anything.
        """


# sinks


class Backlog(NamedTuple):
    """What a partition has to write: offsets from ``position`` to ``end``."""

    position: int
    end: int

    @property
    def size(self) -> int:
        return max(0, self.end - self.position)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkReport:
    """The outcome of a share."""

    task: int
    share: SinkShare
    positions: Mapping[TopicPartition, int]
    """Up to where each partition is written."""
    result: Any = None
    """What ``write`` has returned."""
    record_count: int = 0


class SinkRecords(Protocol):
    """The records of a share: fetched, converted and transformed while they are iterated over, in order within each
    partition. ``SinkRecord.topic`` is what transforms have made of it; `SinkRecord.origin` is where it came from.
    """

    def __iter__(self) -> Iterator[SinkRecord]: ...

    def raw_batches(self) -> Iterator[Any] | None:
        """Instead of iterating: `pyarrow.RecordBatch` es of what is stored, with the columns ``topic``, ``partition``,
        ``offset``, ``timestamp``, ``timestampType``, ``key`` and ``value``, as the source of ``format("millbeck")`` has
        them. None if transforms are configured, or records have to be looked at one by one for another reason.
        """

    def reject(self, record: SinkRecord, error: Exception) -> None:
        """This record cannot be written: it goes to the dead-letter topic, if ``errors.tolerance=all`` allows that.
        Otherwise the task fails with this error, which is raised. Never for an outage.
        """

    def stop_at(self, partition: TopicPartition, offset: int) -> None:
        """The share is written up to this offset only; the next turn begins there. For sinks that write whole files."""


class SinkConnector(Connector):
    """Writes to another system. How a repeated share does not become a second copy is the connector's to say:
    `delivery`. A share is written again after a failure, and possibly while an earlier attempt in a lost process still
    writes.
    """

    @property
    def delivery(self) -> Delivery:
        """The kind of delivery with these settings."""
        return self.declared.delivery

    def positions(self, committed: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """On the worker, at start and after each failed turn: from where writing goes on. ``committed`` are the
        positions of the consumer group for all partitions of the topics; with `Delivery.IN_TARGET`, those that the
        other system knows better replace them.
        """
        return committed

    def alter_positions(self, positions: Mapping[TopicPartition, int | None]) -> None:
        """On the worker, for a stopped connector: an administrator sets these positions in the consumer group, None
        resets one. With `Delivery.IN_TARGET`, what the other system knows must follow. The object is not started.
        """

    def plan(self, backlog: Mapping[TopicPartition, Backlog]) -> Plan[SinkShare]:
        """On the worker: cut what there is to write into shares. Partitions without anything to write are not in
        ``backlog``. By default the partitions are dealt out to tasks.

        A sink of files leaves out a partition that has no whole file yet, and says with ``again_s`` when time alone
        will complete one; new records wake it anyway. If only the records tell, ``write`` ends with
        `SinkRecords.stop_at` at the last whole file.
        """
        return dealt_out(backlog, self.context.tasks_max)

    def write(self, share: SinkShare, records: SinkRecords) -> Any:
        """In a task: write the records. What it returns is pickled to `commit` as `SinkReport.result` (small: names of
        written files, not their content). When it returns, the records are stored for good, or staged for `commit`.

        - `Delivery.DETERMINISTIC`: a repetition writes the same objects under the same names.
        - `Delivery.IN_TARGET`: the ends of the ranges are stored in the target's own transaction, which also checks
          that their starts are what is stored there: if not, another attempt was faster, and nothing may be written
          (`RetriableError`; the worker then reads `positions`).
        - `Delivery.UPSERT`: a repetition sets the same rows again.
        """
        raise NotImplementedError

    def commit(self, reports: Sequence[SinkReport]) -> None:
        """On the worker, with the shares of a turn that were written, before their positions are committed to the
        consumer group: one snapshot of a table over the files of all tasks. If it raises, all of them count as failed.
        """


RECORDS_PER_SHARE_MAX = 200_000


def dealt_out(backlog: Mapping[TopicPartition, Backlog], tasks_max: int) -> Plan[SinkShare]:
    """Shares of whole partitions, the longest first to the task with the least; a partition gives at most
    `RECORDS_PER_SHARE_MAX` offsets a turn.
    """
    waiting = sorted(((found.size, partition) for partition, found in backlog.items()), reverse=True)
    shares: list[list[OffsetRange]] = [[] for _ in range(min(tasks_max, len(waiting)))]
    loads = [0] * len(shares)
    has_more = False
    for size, partition in waiting:
        if not size:
            continue
        count = min(size, RECORDS_PER_SHARE_MAX)
        has_more = has_more or count < size
        least = loads.index(min(loads))
        loads[least] += count
        start = backlog[partition].position
        shares[least].append(OffsetRange(partition, start, start + count))
    return Plan(
        shares=tuple(
            SinkShare(ranges=tuple(sorted(ranges)), is_long=load >= RECORDS_PER_SHARE_MAX)
            for ranges, load in zip(shares, loads, strict=True)
            if ranges
        ),
        again_s=0 if has_more else None,
    )
