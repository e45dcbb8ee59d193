"""What a group commits: offsets, and the member that commits them. Producers with transactions need both."""

from __future__ import annotations

from typing import NamedTuple


class CommittedOffset(NamedTuple):
    """The next offset to read, the leader epoch of the record before it, and the program's metadata string."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


class Committer(NamedTuple):
    """The committing member with its epoch, or empty for a commit outside of group membership."""

    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None
