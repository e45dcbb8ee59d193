"""``quorum-state``: the epoch, its leader and this node's vote, in Kafka's JSON format.

The file prevents a node from voting twice in an epoch, so it is persisted before any effect that depends on it. Version
0 is used by clusters with static voters (``kraft.version`` 0), version 1 by those with the voters in the log; a node
writes the version its cluster uses.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from millbeck.kernel.ids import ZERO_UUID, Uuid, parse_uuid, uuid_text

FILE_NAME = "quorum-state"
NO_NODE = -1


class QuorumStateError(Exception):
    """The file is malformed. Guessing its content could mean voting twice, so the process must stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """``leader_id`` and ``voted_id`` are -1 if there is none. The last three fields exist only in version 0."""

    leader_epoch: int = 0
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    voted_directory_id: Uuid = ZERO_UUID
    version: int = 0
    cluster_id: str = ""
    applied_offset: int = 0
    current_voters: tuple[int, ...] = ()

    def to_text(self) -> str:
        """Format the file's content exactly as Kafka writes it."""
        fields: dict[str, Any]
        if self.version == 0:
            fields = {
                "clusterId": self.cluster_id,
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "appliedOffset": self.applied_offset,
                "currentVoters": [{"voterId": voter} for voter in self.current_voters],
                "data_version": 0,
            }
        else:
            fields = {
                "leaderId": self.leader_id,
                "leaderEpoch": self.leader_epoch,
                "votedId": self.voted_id,
                "votedDirectoryId": uuid_text(self.voted_directory_id),
                "data_version": 1,
            }
        return json.dumps(fields, separators=(",", ":"))


def parse_quorum_state(text: str) -> QuorumState:
    """Parse the file; raises `QuorumStateError` if it is malformed or newer than this release."""
    try:
        fields = json.loads(text)
        version = _number(fields, "data_version")
        if version not in (0, 1):
            raise QuorumStateError(f"quorum-state has unsupported version {version}; supported are 0 and 1")
        state = QuorumState(
            version=version,
            leader_epoch=_number(fields, "leaderEpoch"),
            leader_id=_number(fields, "leaderId"),
            voted_id=_number(fields, "votedId"),
        )
        if version == 1:
            return replace(state, voted_directory_id=parse_uuid(fields["votedDirectoryId"]))
        return replace(
            state,
            cluster_id=str(fields.get("clusterId") or ""),
            applied_offset=_number(fields, "appliedOffset") if "appliedOffset" in fields else 0,
            current_voters=tuple(_number(voter, "voterId") for voter in fields.get("currentVoters") or ()),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise QuorumStateError(f"cannot parse quorum-state: {error!r}") from error


def _number(fields: Any, name: str) -> int:
    value = fields[name]
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, not a number")
    return value
