"""A stand-in for the quorum's driver: it says who leads, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from millbeck.raft.voters import Leader
from millbeck.records.control import VoterEndpoint
from millbeck.server.metadata.quorum_driver import QuorumDriver


class SaysWhoLeads:
    def __init__(self, node_id: int = 9) -> None:
        self.node_id = node_id
        self.leader = Leader()
        self.is_active = False
        self._listeners: list[Callable[[Leader], None]] = []

    def on_leader_change(self, listener: Callable[[Leader], None]) -> None:
        self._listeners.append(listener)

    def lead(self, node_id: int, port: int, *, epoch: int = 1, host: str = "n1") -> None:
        self.leader = Leader(node_id=node_id, epoch=epoch, endpoint=VoterEndpoint(name="CTL", host=host, port=port))
        self.is_active = node_id == self.node_id
        for listener in self._listeners:
            listener(self.leader)


def as_quorum(stand_in: SaysWhoLeads) -> QuorumDriver:
    return cast(QuorumDriver, cast(Any, stand_in))
