"""The driver's requests to the cluster: topics, topic ids and offsets.

Every answer is fresh. Errors of the client become errors for the user of the query (`millbeck.pipeline.errors`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final, TypeVar

from millbeck.client.blocking import Blocking
from millbeck.client.consumer import Consumer
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout
from millbeck.client.metadata import TopicView
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    InvalidConfig,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.pipeline.errors import BrokerUnreachable, InvalidOption, PipelineError, RecordsLost, TopicMissing
from millbeck.pipeline.offsets import Offsets
from millbeck.pipeline.source_options import EARLIEST, LATEST, Position, SourceOptions

T = TypeVar("T")

FIRST_CONTACT_S: Final = 15.0
"""The timeout for the first answer; later ones are longer, so that a broker restart does not fail a query."""
_REFUSED_S: Final = 5.0
"""The timeout for addresses that refuse connections."""
_TOPIC_APPEARS_S: Final = 3.0
"""The time for a new topic to become known to all brokers."""


class LogView:
    def __init__(self, options: SourceOptions, blocking: Blocking | None = None) -> None:
        self._options = options
        self._blocking = Blocking() if blocking is None else blocking
        self._has_answered = False
        try:
            settings = {name: value for name, value in options.settings.items() if name != "group.id"}
            self._consumer = self._blocking.make(lambda environment: Consumer(settings, environment=environment))
        except InvalidConfig as error:
            raise InvalidOption(f"{error} (client settings are options with the prefix kafka.)") from error

    def close(self) -> None:
        self._blocking.close()

    def monotonic_s(self) -> float:
        return self._blocking.environment.clock.monotonic()

    def wall_ms(self) -> int:
        return self._blocking.environment.clock.wall_ms()

    # topics

    def topics(self) -> dict[str, TopicView]:
        """The current topics that the options name or match. Raises `TopicMissing`."""
        options = self._options
        if options.pattern is not None:
            return self._matching(options.pattern)
        names = list(options.topics or options.assigned)
        found = self._ask(lambda: self._named(names))
        for topic, partitions in options.assigned.items():
            missing = [number for number in partitions if number not in found[topic].partitions]
            if missing:
                count = found[topic].partition_count
                raise TopicMissing(f"topic {topic} has {count} partitions, 0 to {count - 1}, not {missing[0]}")
        return found

    async def _named(self, names: list[str]) -> dict[str, TopicView]:
        cluster = self._consumer.cluster
        # Forget cached metadata first, so that only fresh topics are returned.
        cluster.set_topics([])
        cluster.set_topics(names)
        await cluster.retrying(self._refresh, timeout_s=self._patience_s)
        found: dict[str, TopicView] = {}
        for name in names:
            try:
                found[name] = await cluster.topic(name, timeout_s=_TOPIC_APPEARS_S)
            except (UnknownTopicOrPartition, InvalidTopic) as error:
                raise TopicMissing(
                    f"there is no topic {name} at {self._options.settings['bootstrap.servers']}; "
                    f"create it (millbeck topic create {name}), or correct the name"
                ) from error
        return found

    async def _refresh(self, deadline: Deadline) -> None:
        await self._consumer.cluster.refresh(deadline)

    def _matching(self, text: str) -> dict[str, TopicView]:
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise InvalidOption(f"the option subscribePattern is not a valid regular expression: {error}") from None
        cluster = self._consumer.cluster
        cluster.wants_all_topics = True
        self._ask(lambda: cluster.retrying(self._refresh, timeout_s=self._patience_s))
        return {
            name: topic
            for name, topic in sorted(cluster.metadata.topics.items())
            if pattern.fullmatch(name) and not topic.is_internal
        }

    def partitions(self, topics: Mapping[str, TopicView]) -> list[TopicPartition]:
        """The partitions to read, sorted."""
        return [
            TopicPartition(name, number)
            for name in sorted(topics)
            for number in sorted(self._options.assigned.get(name, topics[name].partitions))
        ]

    @staticmethod
    def ids(topics: Mapping[str, TopicView]) -> dict[str, Uuid]:
        return {name: topic.topic_id for name, topic in topics.items() if topic.topic_id != ZERO_UUID}

    # offsets

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        return self._ask(lambda: self._consumer.beginning_offsets(wanted, timeout_s=self._patience_s))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end offsets for this source: with read_committed, the last stable offsets."""
        wanted = list(partitions)
        return self._ask(lambda: self._consumer.end_offsets(wanted, timeout_s=self._patience_s))

    def at(self, position: Position, *, is_start: bool) -> Offsets:
        """The offsets of a position now."""
        topics = self.topics()
        partitions = self.partitions(topics)
        return Offsets(self._resolve(position, partitions, is_start=is_start), self.ids(topics))

    def _resolve(
        self, position: Position, partitions: list[TopicPartition], *, is_start: bool
    ) -> dict[TopicPartition, int]:
        if position.everywhere is not None:
            return self.earliest(partitions) if position.everywhere == EARLIEST else self.latest(partitions)
        if position.timestamp_ms is not None:
            return self._by_time(dict.fromkeys(partitions, position.timestamp_ms), is_start=is_start)
        name = f"{'starting' if is_start else 'ending'}Offsets"
        if position.timestamps is not None:
            times = _complete(position.timestamps, partitions, f"{name}ByTimestamp")
            return self._by_time(times, is_start=is_start)
        assert position.offsets is not None
        offsets = _complete(position.offsets, partitions, name)
        special = {
            EARLIEST: self.earliest(found) if (found := _having(offsets, EARLIEST)) else {},
            LATEST: self.latest(found) if (found := _having(offsets, LATEST)) else {},
        }
        return {
            partition: special[offset][partition] if offset in special else offset
            for partition, offset in offsets.items()
        }

    def _by_time(self, times: Mapping[TopicPartition, int], *, is_start: bool) -> dict[TopicPartition, int]:
        found = self._ask(lambda: self._consumer.offsets_for_times(times, timeout_s=self._patience_s))
        late = [partition for partition, answer in found.items() if answer is None]
        if late and is_start and self._options.fails_beyond_last_timestamp:
            raise RecordsLost(
                f"{late[0]} has no record at or after timestamp {times[late[0]]}: nothing to start from. "
                "startingOffsetsByTimestampStrategy=latest begins at the end instead"
            )
        ends = self.latest(late) if late else {}
        return {partition: ends[partition] if answer is None else answer.offset for partition, answer in found.items()}

    # asking

    @property
    def _patience_s(self) -> float:
        patience_s = self._consumer.config.default_api_timeout_ms / 1000
        return patience_s if self._has_answered else min(patience_s, _REFUSED_S)

    def _ask(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        servers = self._options.settings["bootstrap.servers"]
        try:
            answer = self._answer(question)
        except (NoBrokerReachable, Disconnected, RequestTimeout) as error:
            reason = _reason(error)
            raise BrokerUnreachable(
                f"no broker answers at {servers}: {reason}. Check that it runs, and kafka.bootstrap.servers"
            ) from error
        except TopicAuthorizationFailed as error:
            raise PipelineError(f"not allowed to read {self._options.subscription}: {error}") from error
        except ApiError as error:
            raise PipelineError(f"{servers} refused to describe {self._options.subscription}: {error}") from error
        self._has_answered = True
        return answer

    def _answer(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        ends_at_s = self.monotonic_s() + FIRST_CONTACT_S
        while True:
            try:
                return self._blocking.run(question())
            except RequestTimeout as error:
                is_slow = isinstance(_reason(error), RequestTimeout)
                if self._has_answered or not is_slow or self.monotonic_s() + _REFUSED_S > ends_at_s:
                    raise


def _reason(error: ApiError) -> ApiError:
    """The error to report; for a timeout, the more specific error of the previous attempt."""
    cause = error.__cause__
    return cause if isinstance(error, RequestTimeout) and isinstance(cause, ApiError) else error


def _complete(
    given: Mapping[str, Mapping[int, int]], partitions: list[TopicPartition], name: str
) -> dict[TopicPartition, int]:
    """Check that the option has a number for every partition that is read and for no other, as in Spark."""
    found = {
        TopicPartition(topic, number): value for topic, numbers in given.items() for number, value in numbers.items()
    }
    missing = [str(partition) for partition in partitions if partition not in found]
    strange = [str(partition) for partition in sorted(found) if partition not in partitions]
    if missing or strange:
        what = f"does not name {', '.join(missing[:3])}" if missing else f"names {', '.join(strange[:3])}"
        raise InvalidOption(f"the option {name} {what}: it must name exactly the partitions that are read")
    return {partition: found[partition] for partition in partitions}


def _having(offsets: Mapping[TopicPartition, int], special: int) -> list[TopicPartition]:
    return [partition for partition, offset in offsets.items() if offset == special]
