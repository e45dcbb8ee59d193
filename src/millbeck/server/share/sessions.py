"""Share sessions: what a consumer wants from this broker, said once and then changed a little with each request.

A session belongs to a member of a group and to its connection. Its epoch is 0 when it begins, grows by one with every
request (a fetch or an acknowledgement) and is -1 in the last one. There is nothing to take over from a session: when it
ends, or its connection does, everything its member holds here is released.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound
from millbeck.kernel.ids import Uuid
from millbeck.kernel.units import INT_MAX

if TYPE_CHECKING:
    from millbeck.server.connection import Connection

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

Place = tuple[Uuid, int]
"""A topic's partition."""


def next_epoch(epoch: int) -> int:
    return 1 if epoch == INT_MAX else epoch + 1


class ShareSession:
    __slots__ = ("connection", "epoch", "group_id", "member_id", "on_lost", "places")

    def __init__(self, group_id: str, member_id: str, connection: Connection | None) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = 1
        """What the next request must carry."""
        self.places: dict[Place, None] = {}
        """In the order in which they are served; who had records goes to the end."""
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
        """The session of a request; its epoch goes on, except by the last one."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise ShareSessionNotFound(f"{member_id} of {group_id} has no share session here")
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch(f"epoch {epoch} was sent, {session.epoch} is next")
        session.epoch = next_epoch(session.epoch)
        return session

    def open(
        self, group_id: str, member_id: str, connection: Connection | None, count_max: int
    ) -> tuple[ShareSession, ShareSession | None]:
        """A new session, and the one that it takes the place of."""
        key = (group_id, member_id)
        before = self._sessions.get(key)
        if before is None and len(self._sessions) >= count_max:
            raise ShareSessionLimitReached(f"there are {len(self._sessions)} share sessions already")
        if before is None:
            self._counts[group_id] = self._counts.get(group_id, 0) + 1
        session = self._sessions[key] = ShareSession(group_id, member_id, connection)
        return session, before

    def close(self, session: ShareSession) -> bool:
        """False when it is not the member's session any more."""
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
