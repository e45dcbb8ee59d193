"""Voter sets: the members of the quorum, their identities, and the sets along the log.

A replica is identified by its node id and the id of its log directory: a node that restarts with an empty disk is
another replica, and must not be mistaken for the voter it was before. Static voters (``kraft.version`` 0) have no
directory id, and match any directory of that node.

The newest set in the log takes effect when appended, committed or not (Raft, 4.1). `VoterHistory` keeps the older sets,
because a truncation removes a set and the one before it takes effect again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from millbeck.kernel.ids import ZERO_UUID, Uuid, uuid_text
from millbeck.records.control import KRaftVersion, Voter, VoterEndpoint, VoterId, Voters

NOT_IN_LOG = -1
"""The offset of a static voter set, or of one from the bootstrap snapshot."""


class ReplicaKey(NamedTuple):
    """A node id and directory id; `ZERO_UUID` if the directory is unknown."""

    node_id: int
    directory_id: Uuid = ZERO_UUID

    def __str__(self) -> str:
        return f"{self.node_id}@{uuid_text(self.directory_id)}" if self.directory_id != ZERO_UUID else f"{self.node_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    """A node's view of the quorum's leader; ``node_id`` is -1 if unknown."""

    node_id: int = -1
    epoch: int = 0
    endpoint: VoterEndpoint | None = None

    @property
    def is_known(self) -> bool:
        return self.node_id >= 0


def endpoint_for_listener(endpoints: Sequence[VoterEndpoint], listener: str) -> VoterEndpoint | None:
    """The endpoint of that listener, or the node's first endpoint if it has no such listener."""
    return next((each for each in endpoints if each.name == listener), endpoints[0] if endpoints else None)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """The voters, ascending by node id."""

    voters: tuple[Voter, ...] = ()

    @staticmethod
    def of(voters: tuple[Voter, ...]) -> VoterSet:
        return VoterSet(tuple(sorted(voters, key=lambda voter: voter.node_id)))

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(voter.node_id for voter in self.voters)

    @property
    def keys(self) -> tuple[ReplicaKey, ...]:
        return tuple(key_of(voter) for voter in self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def get(self, node_id: int) -> Voter | None:
        for voter in self.voters:
            if voter.node_id == node_id:
                return voter
        return None

    def has(self, key: ReplicaKey) -> bool:
        """Whether this replica is a voter. A voter without a directory id matches any directory of its node."""
        voter = self.get(key.node_id)
        return voter is not None and voter.directory_id in (ZERO_UUID, key.directory_id)

    def is_only(self, key: ReplicaKey) -> bool:
        return len(self.voters) == 1 and self.has(key)

    def endpoint_of(self, node_id: int, listener: str) -> VoterEndpoint | None:
        """The voter's endpoint for that listener."""
        voter = self.get(node_id)
        return None if voter is None else endpoint_for_listener(voter.endpoints, listener)

    def with_voter(self, added: Voter) -> VoterSet:
        assert self.get(added.node_id) is None, f"{added.node_id} is already a voter"
        return VoterSet.of((*self.voters, added))

    def without(self, key: ReplicaKey) -> VoterSet:
        return VoterSet(tuple(voter for voter in self.voters if key_of(voter) != key))

    def with_changed(self, changed: Voter) -> VoterSet:
        """Replace a voter's endpoints or versions."""
        return VoterSet(
            tuple(changed if voter.node_id == changed.node_id else voter for voter in self.voters),
        )

    def record(self) -> Voters:
        return Voters(voters=self.voters)

    def voter_ids(self) -> tuple[VoterId, ...]:
        """The voters as listed in a LeaderChange."""
        return tuple(VoterId(node_id=voter.node_id, directory_id=voter.directory_id) for voter in self.voters)


class VoterHistory:
    """The voter sets in the log by offset, oldest first; the first entry is the initial one."""

    __slots__ = ("_sets", "_versions")

    def __init__(self, initial: VoterSet, kraft_version: int = 0) -> None:
        self._sets: list[tuple[int, VoterSet]] = [(NOT_IN_LOG, initial)]
        self._versions: list[tuple[int, int]] = [(NOT_IN_LOG, kraft_version)]

    @property
    def latest(self) -> VoterSet:
        return self._sets[-1][1]

    @property
    def latest_offset(self) -> int:
        """Offset of the latest voter set; `NOT_IN_LOG` for the initial set, which no log record holds."""
        return self._sets[-1][0]

    @property
    def previous(self) -> VoterSet | None:
        """The set before the latest, if it is still kept."""
        return self._sets[-2][1] if len(self._sets) > 1 else None

    @property
    def kraft_version(self) -> int:
        return self._versions[-1][1]

    def at(self, end_offset: int) -> tuple[int, VoterSet]:
        """``kraft.version`` and voters as of ``end_offset``: the content of a snapshot ending there."""
        version = next(version for offset, version in reversed(self._versions) if offset < end_offset)
        return version, next(voters for offset, voters in reversed(self._sets) if offset < end_offset)

    def appended(self, offset: int, value: KRaftVersion | Voters) -> None:
        if isinstance(value, KRaftVersion):
            self._versions.append((offset, value.kraft_version))
        else:
            self._sets.append((offset, VoterSet.of(value.voters)))

    def truncated(self, end_offset: int) -> None:
        """Remove the sets from ``end_offset`` on, because the log was truncated there."""
        self._sets[1:] = [entry for entry in self._sets[1:] if entry[0] < end_offset]
        self._versions[1:] = [entry for entry in self._versions[1:] if entry[0] < end_offset]

    def truncate_old_entries(self, offset: int) -> None:
        """Drop sets below ``offset``, which a snapshot covers; the set in effect there becomes the first."""
        if self._sets[0][0] >= offset or self._versions[0][0] >= offset:
            # A later snapshot was created meanwhile and covers more.
            return
        version, voters = self.at(offset)
        self._sets = [
            (max((at for at, _ in self._sets if at < offset), default=NOT_IN_LOG), voters),
            *(entry for entry in self._sets if entry[0] >= offset),
        ]
        self._versions = [
            (max((at for at, _ in self._versions if at < offset), default=NOT_IN_LOG), version),
            *(entry for entry in self._versions if entry[0] >= offset),
        ]

    def restart(self, end_offset: int, voters: VoterSet, kraft_version: int) -> None:
        """Start again with the voters of a snapshot that ends at ``end_offset`` and replaced the whole log."""
        self._sets = [(end_offset - 1, voters)]
        self._versions = [(end_offset - 1, kraft_version)]


def key_of(voter: Voter) -> ReplicaKey:
    return ReplicaKey(voter.node_id, voter.directory_id)


def static_voters(addresses: dict[int, VoterEndpoint]) -> VoterSet:
    """The static voters of ``controller.quorum.voters``: an endpoint per node, without directory ids."""
    return VoterSet.of(
        tuple(
            Voter(node_id=node_id, directory_id=ZERO_UUID, endpoints=(endpoint,))
            for node_id, endpoint in addresses.items()
        )
    )
