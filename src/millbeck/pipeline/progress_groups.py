"""Needs pyspark: commit a query's offsets to a consumer group, so that its lag is visible in every Kafka tool.

    spark.streams.addListener(ProgressGroups({"bootstrap.servers": "127.0.0.1:9092"}, {"revenue": "revenue-pipeline"}))

After each batch of a query named ``revenue`` its offsets are committed to the group ``revenue-pipeline``. If a query's
name is not in the mapping, its group is ``prefix`` and its name. These commits are only for monitoring: the query
itself uses its checkpoint, so a failed commit is only logged, and the next one includes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

from millbeck.client.blocking import Blocking
from millbeck.client.consumer import Consumer
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import PipelineError
from millbeck.pipeline.offsets import Offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

log = logging.getLogger(__name__)

_OUR_SOURCES = ("PythonMicroBatchStream", "millbeck", "KafkaV2")


class ProgressGroups(StreamingQueryListener):
    def __init__(
        self, settings: Mapping[str, str], groups: Mapping[str, str] | None = None, *, prefix: str = "millbeck-"
    ) -> None:
        """``settings`` are client settings under Kafka's names; ``groups`` maps query names to groups."""
        self._settings = dict(settings)
        self._groups = dict(groups or {})
        self._prefix = prefix

    def group_of(self, query_name: str | None) -> str | None:
        """The group; None for a query without a name."""
        if query_name is None:
            return None
        return self._groups.get(query_name, f"{self._prefix}{query_name}")

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        if self.group_of(event.name) is None:
            log.info("query %s has no name, so its offsets are committed to no group: use queryName(...)", event.id)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        self.progressed(event.progress)

    def progressed(self, progress: StreamingQueryProgress) -> None:
        """Commit the offsets of a finished batch; called by Spark's listener, or by code that follows a query."""
        group = self.group_of(progress.name)
        if group is None:
            return
        offsets = offsets_of(progress.sources)
        if not offsets:
            return
        try:
            self._commit(group, offsets)
        except ApiError as error:
            log.warning("offsets of query %s were not committed to group %s: %s", progress.name, group, error)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing: no records were read, so there is nothing to commit."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """All offsets are committed already."""

    def _commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        settings = {**self._settings, "group.id": group, "enable.auto.commit": "false"}
        with Blocking() as blocking:
            consumer = blocking.make(lambda environment: Consumer(settings, environment=environment))
            blocking.run(consumer.commit(offsets))


def offsets_of(sources: Iterable[Any]) -> dict[TopicPartition, int]:
    """The end offsets of the query's millbeck sources, from its progress report; sources of other kinds are ignored."""
    found: dict[TopicPartition, int] = {}
    for source in sources:
        if not any(name in source.description for name in _OUR_SOURCES) or not source.endOffset:
            continue
        try:
            end = json.loads(source.endOffset) if isinstance(source.endOffset, str) else source.endOffset
            found |= Offsets.from_json(end).by_partition
        except (PipelineError, ValueError):
            continue
    return found
