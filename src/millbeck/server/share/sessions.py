"""Share sessions: the partitions that a member fetches from this broker, updated incrementally by each request.

A session belongs to a member of a group and to its connection. Its epoch is 0 in the first request, grows by one with
every request (ShareFetch or ShareAcknowledge) and is -1 in the last one. A session cannot be resumed: when it ends or
its connection closes, all records that the member has acquired on this broker are released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound
from millbeck.kernel.ids import Uuid
from millbeck.kernel.units import INT_MAX

if TYPE_CHECKING:
    from millbeck.server.network.connection import Connection

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

Place = tuple[Uuid, int]
"""A topic id and a partition index."""


def next_epoch(epoch: int) -> int:
    return 1 if epoch == INT_MAX else epoch + 1


class ShareSession:
    __slots__ = ("connection", "epoch", "group_id", "member_id", "on_lost", "places")

    def __init__(self, group_id: str, member_id: str, connection: Connection | None) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = 1
        """The epoch that the next request must carry."""
        self.places: dict[Place, None] = {}
        """The session's partitions in the order of fetching; one that returned records moves to the end."""
        self.on_lost: Callable[[], None] = lambda: None

    def add(self, places: Iterable[Place]) -> None:
        for place in places:
            self.places.setdefault(place)

    def forget(self, places: Iterable[Place]) -> None:
        for place in places:
            self.places.pop(place, None)

    def served(self, place: Place) -> None:
        if place in self.places:
            del self.places[place]
            self.places[place] = None


class ShareSessions:
    def __init__(self) -> None:
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._counts: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[ShareSession]:
        return iter(list(self._sessions.values()))

    def count_of(self, group_id: str) -> int:
        return self._counts.get(group_id, 0)

    def partition_count(self) -> int:
        return sum(len(session.places) for session in self._sessions.values())

    def find(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session of a request; advances its epoch, except for the final epoch."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ShareSessionNotFound(f"{member_id} of {group_id} has no share session here")
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch(f"share session epoch {epoch} was sent, expected {session.epoch}")
        session.epoch = next_epoch(session.epoch)
        return session

    def open(
        self, group_id: str, member_id: str, connection: Connection | None, count_max: int
    ) -> tuple[ShareSession, ShareSession | None]:
        """Open a new session; also returns the session of the same member that it replaces."""
        key = (group_id, member_id)
        before = self._sessions.get(key)
        if before is None and len(self._sessions) >= count_max:
            raise ShareSessionLimitReached(f"there are {len(self._sessions)} share sessions already")
        if before is None:
            self._counts[group_id] = self._counts.get(group_id, 0) + 1
        session = self._sessions[key] = ShareSession(group_id, member_id, connection)
        return session, before

    def close(self, session: ShareSession) -> bool:
        """Close a session; False when it was already closed or replaced."""
        key = (session.group_id, session.member_id)
        if self._sessions.get(key) is not session:
            return False
        del self._sessions[key]
        left = self._counts[session.group_id] - 1
        if left:
            self._counts[session.group_id] = left
        else:
            del self._counts[session.group_id]
        return True
