"""Needs pyarrow: the code of a task, which reads a range of one partition as Arrow record batches.

Spark reuses Python workers for several tasks, so a worker caches its client: the next task of the same query needs no
new connection and no metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

from millbeck.client.blocking import Blocking
from millbeck.client.cluster import Cluster
from millbeck.client.columns.arrow import marker_batch, record_batch
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.range_reader import CHUNK_BYTES_MAX, RangeReader, RangeUnreadable, TopicRecreated
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout
from millbeck.kernel.errors import ApiError
from millbeck.pipeline.errors import BrokerUnreachable, PipelineError, RecordsLost, TopicChanged
from millbeck.pipeline.planning import OffsetRange
from millbeck.pipeline.source_options import SourceOptions

log = logging.getLogger(__name__)


class _Client:
    """A worker's client for one cluster."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.config = ConsumerConfig.parse(settings)
        self.blocking = Blocking()
        self.cluster = self.blocking.make(lambda environment: Cluster(environment, self.config))


_clients: dict[tuple[tuple[str, str], ...], _Client] = {}
"""Clients by settings; a worker usually serves one query."""


def _client(settings: Mapping[str, str]) -> _Client:
    key = tuple(sorted(settings.items()))
    if key not in _clients:
        while _clients:
            _, old = _clients.popitem()
            old.blocking.close()
        _clients[key] = _Client(settings)
    return _clients[key]


def read_marker(options: SourceOptions, at_ms: int) -> Iterator[Any]:
    yield marker_batch(at_ms, options.includes_headers)


def read_range(options: SourceOptions, found: OffsetRange) -> Iterator[Any]:
    """The range's records as `pyarrow.RecordBatch`es."""
    client = _client(options.settings)
    reader = RangeReader(
        client.cluster,
        client.config,
        found.partition,
        found.start,
        found.end,
        topic_id=found.topic_id,
        with_headers=options.includes_headers,
        chunk_bytes_max=options.chunk_bytes_max or CHUNK_BYTES_MAX,
    )
    topic, number = found.partition
    try:
        while True:
            try:
                chunk = client.blocking.run(reader.next_chunk())
            except RangeUnreadable as error:
                if options.fails_on_data_loss:
                    raise RecordsLost(f"{error}. failOnDataLoss=false continues without the lost records") from error
                log.warning("%s; continuing because failOnDataLoss is false", error)
                if not reader.next_offset < error.log_start_offset < found.end:
                    return
                reader.next_offset = error.log_start_offset
                continue
            if chunk is None:
                return
            for columns in chunk.columns():
                if columns.row_count:
                    yield record_batch(columns, topic, number, options.includes_headers)
    except TopicRecreated as error:
        raise TopicChanged(f"{error}; the batch that reads {found.partition} was planned for the old one") from error
    except (NoBrokerReachable, Disconnected, RequestTimeout) as error:
        raise BrokerUnreachable(f"{found.partition}: reading failed at offset {reader.next_offset}: {error}") from error
    except ApiError as error:
        raise PipelineError(f"{found.partition}: reading failed at offset {reader.next_offset}: {error}") from error
    finally:
        client.blocking.run(reader.close())
