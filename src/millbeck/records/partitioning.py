"""Kafka's default partitioner for records with a key; all clients must compute the same partition."""

from __future__ import annotations

from millbeck.records.native.murmur2 import murmur2

__all__ = ["murmur2", "partition_for_key"]


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of ``key``: the hash without its sign bit, modulo ``partition_count``."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count
