"""What a node's file says about the quorum, in the form the driver takes it.

    QuorumSettings(static_voters={1: Address("c1", 9093), ...})   # controller.quorum.voters: kraft.version 0
    QuorumSettings(bootstrap_servers=(Address("c1", 9093),))      # the voters are in the log: kraft.version 1

``can_vote`` is False for a node without the controller role: it follows the log and never takes part in elections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millbeck.client.addresses import Address
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.kernel.units import MIB
from millbeck.raft.timeouts import QuorumTimeouts
from millbeck.records.control import VoterEndpoint

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """Leave everything out for a node that is alone: it is its own quorum and never waits for anybody."""

    can_vote: bool = True
    """Whether the node has the controller role."""
    cluster_id: str = ""
    """Checked against what others send; "" is not checked."""
    directory_id: Uuid = ZERO_UUID
    """``directory.id`` of the metadata log's directory."""
    static_voters: Mapping[int, Address] = field(default_factory=dict)
    """``controller.quorum.voters``: by node id. Empty when the voters are in the log, or for a node that is alone."""
    bootstrap_servers: tuple[Address, ...] = ()
    """``controller.quorum.bootstrap.servers``."""
    listeners: tuple[VoterEndpoint, ...] = ()
    """Where this node's controller listeners can be reached, the default one first; empty on a broker."""
    auto_join: bool = False
    """``controller.quorum.auto.join.enable``."""
    timeouts: QuorumTimeouts = field(default_factory=QuorumTimeouts)
    fetch_bytes_max: int = 1 * MIB
    fetch_snapshot_bytes_max: int = 1 * MIB
    listener_name: str = "CONTROLLER"
    """The listener over which nodes reach controllers: the first of ``controller.listener.names``."""
    tls: ssl.SSLContext | None = None
    """For connections to controllers whose listener is SSL."""
