"""Needs pyspark: what a topology adds to the cluster, to disks and to memory, as lines for users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.pipeline.errors import PipelineError
from millbeck.pipeline.topology.checkpoints import sources_of

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

_MILLION: Final = 1_000_000
_MEGA: Final = 1_000_000
WORKER_MEGABYTES: Final = 130
"""A Python process of Spark's that reads, decodes or keeps state, with Arrow and the client."""


def budget_lines(topology: Topology) -> list[str]:
    lines = [_topics(topology), _shuffles(topology), *_state(topology), _memory(topology)]
    return [f"budget   {line}" for line in lines]


def _topics(topology: Topology) -> str:
    changelogs = topology.changelogs
    written = [name for name in topology.written if name not in changelogs]
    try:
        read_count = sum(topology.partition_counts(topology.sources).values())
        largest = max(topology.partition_counts(topology.sources).values(), default=1)
        written_count = sum(topology.partition_counts(written).values())
    except PipelineError as error:
        return f"topics: {len(topology.sources)} read, {len(written)} written; partitions are not known: {error}"
    made = f"; {_many(len(changelogs), 'changelog')} made with {len(changelogs) * largest}" if changelogs else ""
    return (
        f"topics: {len(topology.sources)} read with {_many(read_count, 'partition')}; {len(written)} written with "
        f"{written_count}{made}; no others"
    )


def _shuffles(topology: Topology) -> str:
    partitions = topology.spark.conf.get("spark.sql.shuffle.partitions")
    count = len(topology.outline.shuffles)
    return (
        f"shuffles: {count}, each of {partitions} tasks (spark.sql.shuffle.partitions)" if count else "shuffles: none"
    )


def _state(topology: Topology) -> list[str]:
    stores = topology.outline.stores
    if not stores:
        return ["state: none"]
    partitions = int(topology.spark.conf.get("spark.sql.shuffle.partitions") or 1)
    known = [store.bytes_per_key for store in stores if store.bytes_per_key is not None]
    size = sum(known) * _MILLION / _MEGA
    lines = [
        f"state: {_many(len(stores), 'store')} of {_many(partitions, 'partition')}, about {size:,.0f} MB for a million "
        "keys in each, on the executors' disks and again in the checkpoint"
    ]
    for store in stores:
        told = "not known" if store.bytes_per_key is None else f"{store.bytes_per_key} B for each {store.counted}"
        lines.append(f"state of {store.name}: {told}")
    return lines


def _memory(topology: Topology) -> str:
    frame = topology.outgoing()
    readings = sources_of(frame)
    slots = topology.spark.sparkContext.defaultParallelism if readings is not None else None
    if topology.is_real_time:
        return "memory: that of Spark's Java; nothing runs in Python"
    if slots is None or readings is None:
        return f"memory: a Python process of some {WORKER_MEGABYTES} MB for each task that runs, on the server"
    total = (slots + len(set(readings))) * WORKER_MEGABYTES
    return (
        f"memory: {_many(slots, 'task')} at once and {_many(len(set(readings)), 'source')}, a Python process of some "
        f"{WORKER_MEGABYTES} MB for each: {total:,} MB beside Spark's Java; as much again for each Avro or Protobuf "
        "serde and function in Python"
    )


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
