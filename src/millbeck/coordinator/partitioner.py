"""Maps a key to a partition of an internal topic: the absolute value of Java's string hash, modulo the partitions.

Group ids, transactional ids and share keys all use it, so every node and every client agrees on the coordinator.
"""

from __future__ import annotations

_INT_MIN = -(1 << 31)


def java_string_hash(text: str) -> int:
    """The signed 32-bit polynomial hash over the text's UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (value * 31 + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(key: str, partition_count: int) -> int:
    value = java_string_hash(key)
    # The absolute value of the smallest 32-bit integer does not fit in 32 bits; Kafka uses zero for it.
    return 0 if value == _INT_MIN else abs(value) % partition_count
