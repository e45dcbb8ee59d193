"""How long members of the quorum wait for each other: ``controller.quorum.*`` with Kafka's defaults."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumTimeouts:
    """All in milliseconds."""

    election_ms: int = 1000
    """An election that is not decided by then is over; drawn between once and twice this, so that rivals part."""
    fetch_ms: int = 2000
    """A follower that hears nothing of its leader for this long asks for an election."""
    election_backoff_ms_max: int = 1000
    """The longest rest after a lost election."""
    request_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_wait_ms_max: int = 500
    """How long a leader holds a fetch that has nothing to answer."""

    @property
    def check_quorum_ms(self) -> int:
        """A leader that a majority has not fetched from for this long resigns."""
        return self.fetch_ms * 3 // 2

    @property
    def begin_epoch_ms(self) -> int:
        """How often a leader tells voters that do not fetch that it leads."""
        return max(1, self.fetch_ms // 2)

    @property
    def update_voter_ms(self) -> int:
        """How often a follower looks whether the voters' record says the truth about it."""
        return self.fetch_ms
