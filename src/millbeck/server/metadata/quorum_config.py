"""Convert the node's configuration to the quorum driver's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.client.addresses import Address
from millbeck.kernel.ids import Uuid
from millbeck.metadata.image import Endpoint
from millbeck.raft.options import QuorumTimeouts
from millbeck.records.control import VoterEndpoint
from millbeck.server.config import NodeConfig
from millbeck.server.config.roles import parse_host_and_port
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.network.peer_security import PeerSecurity

FETCHES_IN_TIMEOUT: Final = 4
"""The number of empty fetches that fit into ``controller.quorum.fetch.timeout.ms``."""


def is_alone(config: NodeConfig) -> bool:
    """Whether a combined node has no other voter configured.

    It is then a quorum of one, unless its metadata log contains the voters.
    """
    others = [voter for voter in config.voters if voter.node_id != config.node.node_id]
    return config.is_controller and config.is_broker and not others


def quorum_settings(
    config: NodeConfig,
    *,
    cluster_id: str,
    directory_id: Uuid,
    endpoints: Sequence[Endpoint],
    security: PeerSecurity,
) -> QuorumSettings:
    """The driver's settings; ``endpoints`` are the addresses of this node's controller listeners."""
    options = config.quorum
    names = config.controller_names()
    return QuorumSettings(
        can_vote=config.is_controller,
        cluster_id=cluster_id,
        directory_id=directory_id,
        static_voters={voter.node_id: Address(voter.host, voter.port) for voter in config.voters},
        bootstrap_servers=tuple(
            Address(*parse_host_and_port(text, "controller.quorum.bootstrap.servers"))
            for text in options.bootstrap_servers
        ),
        listeners=tuple(
            VoterEndpoint(name=each.listener, host=each.host, port=each.port)
            for each in sorted(endpoints, key=lambda each: names.index(each.listener))
        ),
        auto_join=options.auto_join_enable,
        timeouts=QuorumTimeouts(
            election_ms=options.election_timeout_ms,
            fetch_ms=options.fetch_timeout_ms,
            election_backoff_ms_max=options.election_backoff_ms_max,
            request_ms=options.request_timeout_ms,
            retry_backoff_ms=options.retry_backoff_ms,
            fetch_wait_ms_max=_fetch_wait_ms_max(options.fetch_timeout_ms),
        ),
        fetch_bytes_max=options.fetch_bytes_max,
        fetch_snapshot_bytes_max=options.fetch_snapshot_bytes_max,
        listener_name=names[0] if names else "CONTROLLER",
        security=security,
    )


def _fetch_wait_ms_max(fetch_timeout_ms: int) -> int:
    """The maximum wait of a fetch at an idle leader: the fetch timeout must outlast it and one late response."""
    return min(QuorumTimeouts().fetch_wait_ms_max, fetch_timeout_ms // FETCHES_IN_TIMEOUT)
