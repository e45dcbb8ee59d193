"""Shares out the descriptors of a node: a client that opens connections must not keep its logs from being opened."""

from __future__ import annotations

from dataclasses import dataclass

RESERVED_MIN = 160
"""Enough for files that are synced or opened for a single read or write, connections between nodes, and those that are
accepted in one turn of the loop before they are refused."""
RESERVED_SHARE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenFiles:
    logs: int
    """How many log files stay open."""
    connections: int
    """How many connections of clients there may be."""

    @classmethod
    def shared_out(cls, limit: int, logs_max: int) -> OpenFiles:
        """At most half of the limit for logs; of the rest a part is reserved."""
        logs = max(1, min(logs_max, limit // 2))
        reserved = max(min(RESERVED_MIN, limit // 4), limit // RESERVED_SHARE)
        return cls(logs=logs, connections=max(1, limit - logs - reserved))
