"""The synchronous `Consumer`: it stays a group member while the program works, since its event loop runs in another
thread."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from millbeck.client.config import Value
from millbeck.client.consumer import CommittedOffset, ConsumerConfig, OffsetAndTimestamp
from millbeck.client.consumer import Consumer as AsyncConsumer
from millbeck.client.consumer.client import GroupMetadata
from millbeck.client.consumer.decoding import ConsumerInterceptor
from millbeck.client.consumer.listener import Callbacks, Partitions, RebalanceCallback, RebalanceListener
from millbeck.client.consumer.ordered_commits import CommitCallback
from millbeck.client.metadata import TopicView
from millbeck.client.metrics.registry import MetricName
from millbeck.client.serialization import Deserializer
from millbeck.client.sync.background import EXIT_SECONDS_MAX, Background
from millbeck.host.loop_thread import Caller
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record
from millbeck.records.typevars import K, V

if TYPE_CHECKING:
    from pyarrow import RecordBatch

T = TypeVar("T")


class _InCallersThread(RebalanceListener):
    """Runs the program's listener in the thread that polls, or closes."""

    def __init__(self, listener: RebalanceListener) -> None:
        self._listener = listener
        self.caller: Caller | None = None

    def on_assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        return self._ask(lambda: self._listener.on_assigned(partitions))

    def on_revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        return self._ask(lambda: self._listener.on_revoked(partitions))

    def on_lost(self, partitions: Partitions) -> Awaitable[None] | None:
        return self._ask(lambda: self._listener.on_lost(partitions))

    def _ask(self, function: Callable[[], Awaitable[None] | None]) -> Awaitable[None] | None:
        return cast("Awaitable[None]", self.caller.run(function)) if self.caller is not None else function()


class Consumer(Background, Generic[K, V]):
    """The synchronous consumer. Only one thread at a time may poll; the other methods may be called from any thread."""

    def __init__(
        self,
        settings: Mapping[str, object] | ConsumerConfig | None = None,
        *,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        self._consumer: AsyncConsumer[K, V] = AsyncConsumer(
            settings,
            key_deserializer=key_deserializer,
            value_deserializer=value_deserializer,
            interceptors=interceptors,
            environment=environment,
            **named,
        )
        self._consumer.is_iterated_elsewhere = True
        super().__init__()
        self.config = self._consumer.config
        self._listener = _InCallersThread(RebalanceListener())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and not self._is_closed and self._thread is not None:
            self._call_plain(self._consumer.give_back)
        self.close()

    # assignment and subscription

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = list(partitions)
        self._call_plain(lambda: self._consumer.assign(wanted))

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Like the asynchronous method, but the callbacks are plain functions, which run in the thread that polls."""
        self._listener = _InCallersThread(listener or Callbacks(on_assigned, on_revoked, on_lost))
        self._call_plain(lambda: self._consumer.subscribe(topics, pattern=pattern, listener=self._listener))

    def unsubscribe(self) -> None:
        self._call_attended(self._consumer.unsubscribe)

    @property
    def assignment(self) -> Partitions:
        return self._consumer.assignment

    @property
    def subscription(self) -> list[str]:
        return self._consumer.subscription

    @property
    def paused(self) -> Partitions:
        return self._consumer.paused

    # records

    def poll(
        self, *, timeout_s: float = 1.0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        """Return records by partition as soon as there are some; none after ``timeout_s``."""
        return self._call_attended(lambda: self._consumer.poll(timeout_s=timeout_s, max_records=max_records))

    def poll_columns(
        self, *, timeout_s: float = 1.0, with_headers: bool = False
    ) -> dict[TopicPartition, list[RecordBatch]]:
        """Like `poll`, but returns Arrow record batches, with no object per record; needs millbeck[columns]."""
        return self._call_attended(lambda: self._consumer.poll_columns(timeout_s=timeout_s, with_headers=with_headers))

    def __iter__(self) -> Iterator[Record[K, V]]:
        """Yield all records, one by one, until the consumer is closed."""
        while True:
            run = self._call_attended(self._consumer.next_run)
            if run is None:
                return
            for record in run:
                run.current = record
                yield self._consumer.decoded(run, record)
                if self._consumer.group_waits:
                    break

    def _call_attended(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Like `_call`, but the program's listener runs in the calling thread meanwhile."""

        async def attended(caller: Caller) -> T:
            self._listener.caller = caller
            try:
                return await work()
            finally:
                self._listener.caller = None

        return self._call_with(attended)

    # positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._call_plain(lambda: self._consumer.seek(partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._call_plain(lambda: self._consumer.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._call_plain(lambda: self._consumer.seek_to_end(*partitions))

    def pause(self, *partitions: TopicPartition) -> None:
        self._call_plain(lambda: self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._call_plain(lambda: self._consumer.resume(*partitions))

    def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        return self._call(lambda: self._consumer.position(partition, timeout_s=timeout_s))

    def lag(self, partition: TopicPartition) -> int | None:
        return self._call_plain(lambda: self._consumer.lag(partition))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._call(lambda: self._consumer.offsets_for_times(timestamps, timeout_s=timeout_s))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return self._call(lambda: self._consumer.beginning_offsets(partitions, timeout_s=timeout_s))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return self._call(lambda: self._consumer.end_offsets(partitions, timeout_s=timeout_s))

    # committing

    def commit(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None, *, timeout_s: float | None = None
    ) -> None:
        self._call(lambda: self._consumer.commit(offsets, timeout_s=timeout_s))

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        return self._call(lambda: self._consumer.committed(partitions, timeout_s=timeout_s))

    def consumed(self) -> dict[TopicPartition, CommittedOffset]:
        return self._call_plain(self._consumer.consumed)

    def group_metadata(self) -> GroupMetadata:
        return self._call_plain(self._consumer.group_metadata)

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None,
        *,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit in the background, in order; ``callback`` runs in the thread of the event loop."""
        self._call_plain(lambda: self._consumer.commit_nowait(offsets, callback=callback))

    def enforce_rebalance(self, reason: str = "the program asked for it") -> None:
        self._call_plain(lambda: self._consumer.enforce_rebalance(reason))

    def topic(self, name: str, *, timeout_s: float | None = None) -> TopicView:
        """A topic's partitions and their leaders."""
        return self._call(lambda: self._consumer.topic(name, timeout_s=timeout_s))

    def metrics(self) -> dict[MetricName, float]:
        return self._call_plain(self._consumer.metrics)

    def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        return self._call(lambda: self._consumer.client_instance_id(timeout_s=timeout_s))

    def _close_at_exit(self) -> None:
        self.close(EXIT_SECONDS_MAX)

    def close(self, timeout_s: float = 30.0, *, leaves_group: bool | None = None) -> None:
        """Commit if auto-commit is enabled, leave the group, and stop the thread."""

        async def work(caller: Caller) -> None:
            self._listener.caller = caller
            await self._consumer.close(timeout_s, leaves_group=leaves_group)

        self._close_with(work)
