"""The lag of a pipeline, computed from the current log, since a failed pipeline does not report its lag.

The offsets that it has read are in its consumer group; from partitions without an offset it has read nothing. Its
topics and its group are in the status of its run; client settings, which may be secret, are only in its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from millbeck.client.blocking import Blocking
from millbeck.client.consumer import Consumer
from millbeck.kernel.errors import ApiError, InvalidConfig
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.running.definition import load

PATIENCE_SECONDS: Final = 3.0


class Lags:
    """Computes the lag of several pipelines; a cluster that does not answer is tried only once."""

    def __init__(self) -> None:
        self._silent: set[str] = set()

    def of(self, status: Mapping[str, Any]) -> int | None:
        """The lag of the pipeline with this status in records; None if it is unknown."""
        servers, group, topics = (status.get(part) for part in ("bootstrap_servers", "group", "topics"))
        if not servers or not group or not topics or servers in self._silent:
            return None
        settings = {**_client_settings(status.get("file")), "bootstrap.servers": servers, "group.id": group}
        try:
            with Blocking() as blocking:
                consumer = blocking.make(lambda environment: Consumer(settings, environment=environment))
                return blocking.run(_lag(consumer, topics))
        except (ApiError, InvalidConfig, OSError, TimeoutError):
            self._silent.add(servers)
            return None


def _client_settings(file: str | None) -> dict[str, str]:
    try:
        return load(Path(file)).settings.client if file else {}
    except DefinitionError:
        return {}


async def _lag(consumer: Consumer, topics: Iterable[str]) -> int:
    partitions: list[TopicPartition] = []
    for topic in topics:
        view = await consumer.cluster.topic(topic, timeout_s=PATIENCE_SECONDS)
        partitions += [TopicPartition(topic, number) for number in view.partitions]
    ends = await consumer.end_offsets(partitions, timeout_s=PATIENCE_SECONDS)
    begins = await consumer.beginning_offsets(partitions, timeout_s=PATIENCE_SECONDS)
    committed = await consumer.committed(partitions, timeout_s=PATIENCE_SECONDS)
    lag = 0
    for partition in partitions:
        read = committed.get(partition)
        begin = begins[partition]
        lag += max(0, ends[partition] - max(begin, read.offset if read is not None else begin))
    return lag
