"""Which partition a keyed record belongs to, by Kafka's default rule; other clients must agree byte for byte."""

from __future__ import annotations

from millbeck.records.kernels.murmur2 import murmur2

__all__ = ["murmur2", "partition_for_key"]


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of ``key`` among ``partition_count``: the hash without its sign bit, modulo the count."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
