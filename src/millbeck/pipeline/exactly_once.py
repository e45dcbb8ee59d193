"""Exactly-once batches: one transaction per batch, and a note that identifies the batch, committed in the same
transaction.

The note is a committed offset in the consumer group named like the transactional id; its metadata holds the query id
and batch number. It commits with the batch's records or not at all. A batch that Spark repeats finds its own note and
is not written again. The offset is committed for the lowest partition that the batch wrote; if another query with the
same transactional id already has its note there, the new note keeps that query's batch as well.
docs/adr/0010-exactly-once-sink.md lists what happens for a crash at each point.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from millbeck.client.blocking import Blocking
from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout, UnsupportedByBroker
from millbeck.client.producer.shared_transaction import SharedTransaction, TransactionHandle
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import BrokerUnreachable, InvalidOption, NotExactlyOnce, PipelineError
from millbeck.pipeline.sink_options import SinkOptions

ONE_TASK_ONLY: Final = (
    "with delivery=exactly_once all rows of a log partition must be written by one task. Use "
    "to_log_partitions(frame, ...), or repartition(1), before writing"
)

OTHERS_MAX: Final = 20
"""Maximum number of other queries in one note: about 1 KB, a quarter of the default ``offset.metadata.max.bytes``."""

SKIPPED_MAX: Final = 5
"""Maximum number of skipped records in one note: about another 1 KB with the longest topic names."""

T = TypeVar("T")
Written = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTransaction:
    """The state passed to the tasks of one batch."""

    ticket: TransactionHandle
    noted: Mapping[str, int]
    """The last batch of each query known to be committed."""

    def has_been_written(self, query: str, batch: int) -> bool:
        return batch <= self.noted.get(query, -1)


def begin(options: SinkOptions) -> BatchTransaction:
    """Fence earlier attempts, and read which batches are already committed."""

    async def ask(transaction: SharedTransaction) -> BatchTransaction:
        ticket = await transaction.begin()
        # Read only now: `begin` has completed the previous transaction.
        notes = await transaction.notes(ticket.transactional_id)
        return BatchTransaction(ticket=ticket, noted=batches_of(notes))

    with Blocking() as blocking:
        return _run(options, blocking, _open(options, blocking), ask)


def commit(
    options: SinkOptions, ticket: TransactionHandle, tasks: Sequence[Written], query: str | None, batch: int
) -> None:
    """Commit the batch's transaction; aborts it and raises `NotExactlyOnce` if two tasks wrote to one partition."""
    shared = _shared_by_two(tasks)
    together = {partition: found for task in tasks for partition, found in task.items()}

    async def ask(transaction: SharedTransaction) -> None:
        if shared is not None:
            await transaction.abort()
        elif together:
            # No other note can be committed in between: a new owner of the transactional id fences this ticket.
            kept = {} if query is None else await transaction.notes(ticket.transactional_id)
            note = note_of(together, query, batch, kept, options.skipped)
            await transaction.commit(ticket.transactional_id, note)

    with Blocking() as blocking:
        _run(options, blocking, _open(options, blocking, ticket), ask)
    if shared is not None:
        raise NotExactlyOnce(f"rows for {shared} came from two tasks: {ONE_TASK_ONLY}")


def abort(options: SinkOptions, ticket: TransactionHandle) -> None:
    async def ask(transaction: SharedTransaction) -> None:
        await transaction.abort()

    with Blocking() as blocking:
        _run(options, blocking, _open(options, blocking, ticket), ask)


def sweep(settings: Mapping[str, str], transactional_ids: Sequence[str]) -> None:
    """Abort transactions that killed queries left open under these ids, so that readers need not wait for their
    timeout.

    A query that still runs under one of these ids fails, and continues when restarted: nothing is lost.
    """
    for transactional_id in transactional_ids:
        options = SinkOptions(settings=settings, topic=None, delivery="exactly_once", transactional_id=transactional_id)
        begin(options)


def note_of(
    written: Written,
    query: str | None,
    batch: int,
    kept: Mapping[TopicPartition, CommittedOffset],
    skipped: Sequence[str] = (),
) -> dict[TopicPartition, CommittedOffset]:
    """The note of a batch, as an offset to commit in its transaction; empty if ``query`` is None (not a streaming
    query).

    ``kept`` are the notes already committed in the group. ``skipped`` are records that the query leaves out; the note
    lists the last of them.
    """
    if query is None:
        return {}
    partition = min(written)
    entry: dict[str, Any] = {"query": query, "batch": batch}
    replaced = _entries(kept[partition].metadata) if partition in kept else {}
    others = [(name, number) for name, number in replaced.items() if name != query]
    if others:
        entry["others"] = dict(others[:OTHERS_MAX])
    if skipped:
        entry["skipped"] = list(skipped[-SKIPPED_MAX:])
    text = json.dumps(entry, separators=(",", ":"))
    return {partition: CommittedOffset(max(0, written[partition][1]), -1, text)}


def batches_of(notes: Mapping[TopicPartition, CommittedOffset]) -> dict[str, int]:
    """The last batch of each query in a group's notes; offsets committed by others are ignored."""
    found: dict[str, int] = {}
    for note in notes.values():
        for query, batch in _entries(note.metadata).items():
            found[query] = max(batch, found.get(query, -1))
    return found


def _entries(text: str) -> dict[str, int]:
    """Pairs of query and batch of one note, the most recent first; empty if the metadata is not a note."""
    try:
        entry = json.loads(text)
        pairs = [(entry["query"], entry["batch"]), *entry.get("others", {}).items()]
        return {str(query): int(batch) for query, batch in pairs}
    except (AttributeError, KeyError, TypeError, ValueError):
        return {}


def _shared_by_two(tasks: Sequence[Written]) -> TopicPartition | None:
    seen: set[TopicPartition] = set()
    for task in tasks:
        for partition in sorted(task):
            if partition in seen:
                return partition
            seen.add(partition)
    return None


def _open(options: SinkOptions, blocking: Blocking, ticket: TransactionHandle | None = None) -> SharedTransaction:
    assert options.transactional_id is not None
    name = options.transactional_id
    try:
        return blocking.make(
            lambda environment: SharedTransaction(environment, options.transaction_settings, name, ticket)
        )
    except InvalidConfig as error:
        raise InvalidOption(f"{error} (settings of the producer are options with the prefix kafka.)") from error


def _run(
    options: SinkOptions,
    blocking: Blocking,
    transaction: SharedTransaction,
    ask: Callable[[SharedTransaction], Coroutine[Any, Any, T]],
) -> T:
    try:
        return blocking.run(ask(transaction))
    except UnsupportedByBroker as error:
        raise NotExactlyOnce(f"delivery=exactly_once is not possible: {error}") from error
    except (NoBrokerReachable, Disconnected, RequestTimeout) as error:
        servers = options.settings["bootstrap.servers"]
        name = options.transactional_id
        raise BrokerUnreachable(f"no broker answers for transaction {name} at {servers}: {error}") from error
    except ApiError as error:
        raise PipelineError(f"the transaction {options.transactional_id} failed: {error}") from error
