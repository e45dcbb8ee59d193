"""What makes a query's batches count once: one transaction for each, and a note of it in the same transaction.

The note is an offset of the consumer group that is called like the transactional id, with the query's id and the
batch's number as its metadata; it commits with the batch's records or not at all. A batch that Spark repeats finds its
own note and is not written again. docs/adr/0010-exactly-once-sink.md has every window in which something may die.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from millbeck.client.blocking import Blocking
from millbeck.client.consumer.commits import CommittedOffset
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout, UnsupportedByBroker
from millbeck.client.producer.shared_transaction import SharedTransaction, Ticket
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import BrokerUnreachable, InvalidOption, NotExactlyOnce, PipelineError
from millbeck.pipeline.sink_options import SinkOptions

ONE_TASK_ONLY: Final = (
    "with delivery=exactly_once one task writes all rows of a log partition. Use to_log_partitions(frame, ...), or "
    "repartition(1), before writing"
)

T = TypeVar("T")
Written = Mapping[TopicPartition, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What the tasks of one batch are given."""

    ticket: Ticket
    noted: Mapping[str, int]
    """The last batch of each query that is known to be written."""

    def has_been_written(self, query: str, batch: int) -> bool:
        return batch <= self.noted.get(query, -1)


def begin(options: SinkOptions) -> Begun:
    """Fence whatever an earlier attempt left, and see what has been written."""

    async def ask(transaction: SharedTransaction) -> Begun:
        ticket = await transaction.begin()
        # Only now: the fate of the last transaction is decided.
        notes = await transaction.notes(ticket.transactional_id)
        return Begun(ticket=ticket, noted=batches_of(notes))

    with Blocking() as blocking:
        return _run(options, blocking, _open(options, blocking), ask)


def commit(options: SinkOptions, ticket: Ticket, tasks: Sequence[Written], query: str | None, batch: int) -> None:
    """End the batch's transaction; raises `NotExactlyOnce`, and aborts it, if two tasks wrote to one partition."""
    shared = _shared_by_two(tasks)
    together = {partition: found for task in tasks for partition, found in task.items()}

    async def ask(transaction: SharedTransaction) -> None:
        if shared is not None:
            await transaction.abort()
        elif together:
            await transaction.commit(ticket.transactional_id, note_of(together, query, batch))

    with Blocking() as blocking:
        _run(options, blocking, _open(options, blocking, ticket), ask)
    if shared is not None:
        raise NotExactlyOnce(f"rows for {shared} came from two tasks: {ONE_TASK_ONLY}")


def abort(options: SinkOptions, ticket: Ticket) -> None:
    async def ask(transaction: SharedTransaction) -> None:
        await transaction.abort()

    with Blocking() as blocking:
        _run(options, blocking, _open(options, blocking, ticket), ask)


def sweep(settings: Mapping[str, str], transactional_ids: Sequence[str]) -> None:
    """Abort what killed queries left open under these names, so that readers need not wait for its timeout.

    A query that still runs under one of them fails and, restarted, goes on: nothing is lost.
    """
    for transactional_id in transactional_ids:
        options = SinkOptions(settings=settings, topic=None, delivery="exactly_once", transactional_id=transactional_id)
        begin(options)


def note_of(written: Written, query: str | None, batch: int) -> dict[TopicPartition, CommittedOffset]:
    """What is committed with a batch; nothing for a write that is no query's."""
    if query is None:
        return {}
    partition = min(written)
    text = json.dumps({"query": query, "batch": batch}, separators=(",", ":"))
    return {partition: CommittedOffset(max(0, written[partition][1]), -1, text)}


def batches_of(notes: Mapping[TopicPartition, CommittedOffset]) -> dict[str, int]:
    """The last batch of each query in a group's notes; what others committed there is left alone."""
    found: dict[str, int] = {}
    for note in notes.values():
        try:
            entry = json.loads(note.metadata)
            query, batch = entry["query"], int(entry["batch"])
        except (KeyError, TypeError, ValueError):
            continue
        found[query] = max(batch, found.get(query, -1))
    return found


def _shared_by_two(tasks: Sequence[Written]) -> TopicPartition | None:
    seen: set[TopicPartition] = set()
    for task in tasks:
        for partition in sorted(task):
            if partition in seen:
                return partition
            seen.add(partition)
    return None


def _open(options: SinkOptions, blocking: Blocking, ticket: Ticket | None = None) -> SharedTransaction:
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
