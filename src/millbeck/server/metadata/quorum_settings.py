"""The settings of the quorum driver.

    QuorumSettings(static_voters={1: Address("c1", 9093), ...})   # controller.quorum.voters: kraft.version 0
    QuorumSettings(bootstrap_servers=(Address("c1", 9093),))      # the voters are in the log: kraft.version 1

``can_vote`` is False for a node without the controller role: it follows the log and never takes part in elections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millbeck.client.addresses import Address
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.kernel.units import MIB
from millbeck.raft.options import QuorumTimeouts
from millbeck.records.control import VoterEndpoint
from millbeck.server.network.peer_security import NO_SECURITY, PeerSecurity


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSettings:
    """The settings of the quorum driver; the defaults are for a single node, which is a quorum of one."""

    can_vote: bool = True
    """Whether the node has the controller role."""
    cluster_id: str = ""
    """Compared with the cluster id in requests of other nodes; "" disables the check."""
    directory_id: Uuid = ZERO_UUID
    """``directory.id`` of the metadata log's directory."""
    static_voters: Mapping[int, Address] = field(default_factory=dict)
    """``controller.quorum.voters`` by node id. Empty when the voters are in the log, and for a single node."""
    bootstrap_servers: tuple[Address, ...] = ()
    """``controller.quorum.bootstrap.servers``."""
    listeners: tuple[VoterEndpoint, ...] = ()
    """The endpoints of this node's controller listeners, the default listener first; empty on a broker."""
    auto_join: bool = False
    """``controller.quorum.auto.join.enable``."""
    timeouts: QuorumTimeouts = field(default_factory=QuorumTimeouts)
    fetch_bytes_max: int = 1 * MIB
    fetch_snapshot_bytes_max: int = 1 * MIB
    listener_name: str = "CONTROLLER"
    """The listener that nodes use to connect to controllers: the first of ``controller.listener.names``."""
    security: PeerSecurity = NO_SECURITY
    """The settings of connections to controllers."""
