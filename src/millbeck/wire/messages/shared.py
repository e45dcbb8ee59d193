"""Structs shared by several responses: the current leader and epoch, and node endpoints (KIP-951)."""

from __future__ import annotations

from millbeck.wire.schema import int32, string, struct


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
