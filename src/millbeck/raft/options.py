"""Options of a quorum machine: its role, addresses and timeouts."""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.records.control import VoterEndpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTimeouts:
    """``controller.quorum.*``, with Kafka's defaults, all in milliseconds."""

    election_ms: int = 1000
    """Timeout of an election; randomized between one and two times this value, so that candidates do not repeatedly
    split the votes."""
    fetch_ms: int = 2000
    """Time without a response from the leader after which a follower starts an election."""
    election_backoff_ms_max: int = 1000
    """Maximum backoff after a lost election."""
    request_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = 500
    """Maximum time a leader delays an empty fetch response."""

    @property
    def check_quorum_ms(self) -> int:
        """A leader resigns after this time without fetches from a majority."""
        return self.fetch_ms * 3 // 2

    @property
    def begin_epoch_ms(self) -> int:
        """Interval at which a leader announces its epoch to voters that do not fetch."""
        return max(1, self.fetch_ms // 2)

    @property
    def update_voter_ms(self) -> int:
        """Interval at which a follower checks its entry in the voter set."""
        return self.fetch_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumOptions:
    can_vote: bool = True
    timeouts: QuorumTimeouts = field(default_factory=QuorumTimeouts)
    listeners: tuple[VoterEndpoint, ...] = ()
    listener_name: str = ""
    """The name of the listener to connect to on other nodes; a node without it is contacted on its first listener."""
    bootstrap: tuple[VoterEndpoint, ...] = ()
    """Servers that may know the leader."""
    auto_join: bool = False
