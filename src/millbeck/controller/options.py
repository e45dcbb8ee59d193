"""The options of the controller, set from the server's configuration."""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.kernel.units import DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOptions:
    """``delegation.token.*``; without a secret key there are no tokens."""

    secret: str = field(default="", repr=False)
    lifetime_ms_max: int = 7 * DAY_MS
    expiry_time_ms: int = DAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerOptions:
    """The values of ``num.partitions``, ``default.replication.factor``, ``delete.topic.enable`` and others."""

    partition_count_default: int = 1
    replication_factor_default: int = 1
    delete_topics: bool = True
    cluster_id: str | None = None
    """The cluster id; registrations with another one are refused. None accepts any."""
    session_timeout_ms: int = 9000
    """``broker.session.timeout.ms``."""
    rebalances_leaders: bool = True
    """``auto.leader.rebalance.enable``."""
    rebalance_interval_ms: int = 300_000
    """``leader.imbalance.check.interval.seconds``."""
    unclean_election_interval_ms: int = 300_000
    """``unclean.leader.election.interval.ms``."""
    tokens: TokenOptions = TokenOptions()
