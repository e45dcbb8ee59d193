"""Runs a topology over waves of records: each wave is written, the query started from its checkpoint, and run dry.

So every test of an operator restarts from a checkpoint in the middle, and knows which records share a batch.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from millbeck.pipeline.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog

BATCH_OF_SEGMENTS = 20
BEGIN_MS = 1_700_000_000_000


class Event(NamedTuple):
    """``value`` is written as JSON, None as null; ``at_ms`` counts from `BEGIN_MS`."""

    key: str | None
    value: Any
    at_ms: int = 0


class Waves:
    """``inputs`` and ``outputs`` are names that stand for topics of their own in each run."""

    def __init__(self, spark: SparkSession, log: LiveLog, make_topic: Callable[..., str], directory: Path) -> None:
        self._spark = spark
        self._log = log
        self._make_topic = make_topic
        self._directory = directory

    def run(
        self,
        build: Callable[[Topology, dict[str, str]], None],
        waves: Sequence[Mapping[str, Sequence[Event]]],
        outputs: Sequence[str],
        *,
        partitions: int = 2,
        configs: Mapping[str, Mapping[str, str]] | None = None,
        between: Callable[[dict[str, str]], None] | None = None,
        **settings: Any,
    ) -> dict[str, list[tuple[Any, Any]]]:
        """What each output holds at the end, keys and values read as JSON where they are; of one key in order.

        ``configs`` are those of topics; ``between`` is called with the topics before each wave but the first.
        """
        inputs = {name for wave in waves for name in wave}
        topics = {
            name: self._make_topic(partitions, **(configs or {}).get(name, {})) for name in (*sorted(inputs), *outputs)
        }
        for number, wave in enumerate(waves):
            if number and between is not None:
                between(topics)
            for name, events in wave.items():
                # Only whole batches move on to another segment, and only older segments are compacted.
                size = BATCH_OF_SEGMENTS if name in (configs or {}) else len(events) or 1
                for begin in range(0, len(events), size):
                    self._log.put(topics[name], [_record(event) for event in events[begin : begin + size]])
            topology = Topology("waves", self._spark, bootstrap_servers=self._log.bootstrap, **settings)
            build(topology, topics)
            query = topology.start(
                str(self._directory / "checkpoint"), delivery="at_least_once", trigger={"availableNow": True}
            )
            query.awaitTermination()
        return {
            name: [(_read(record.key), _read(record.value)) for _, record in self._log.read(topics[name])]
            for name in outputs
        }


def _record(event: Event) -> dict[str, Any]:
    return {
        "key": None if event.key is None else event.key.encode(),
        "value": None if event.value is None else json.dumps(event.value).encode(),
        "timestamp": BEGIN_MS + event.at_ms,
    }


def _read(raw: bytes | None) -> Any:
    if raw is None:
        return None
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode()


def by_key(rows: Sequence[tuple[Any, Any]]) -> dict[str, list[Any]]:
    """The values of each key, in order."""
    found: dict[str, list[Any]] = {}
    for key, value in rows:
        found.setdefault(json.dumps(key, sort_keys=True), []).append(value)
    return found
