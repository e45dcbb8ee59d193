"""The way from a partition's leader, or a group's coordinator, to the share coordinator that keeps a share partition.

Which broker that is follows from the key. Here, the shard is called directly; elsewhere, what waits for the same
broker goes out together, one request for each group, and the next one when its answer is in. What another moment may
change (a coordinator that loads, moves or does not answer) is tried again for a while, wherever the coordinator is by
then: all of these are written so that asking twice does no harm.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from millbeck.coordinator.partitioner import partition_for
from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.shard import ShareKey, Written
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RequestTimedOut,
    UnknownServerError,
    by_code,
)
from millbeck.kernel.names import SHARE_GROUP_STATE_TOPIC
from millbeck.server.drivers.share_state import key_text
from millbeck.server.share import errands
from millbeck.server.share.errands import Errand, Kind, Stored

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

PURPOSE: Final = "share-state"
FIRST_PAUSE_MS: Final = 20
PAUSE_MS_MAX: Final = 1000
TRIES_MAX: Final = 15
"""Some ten seconds, with the pauses."""
ANSWER_SECONDS_MAX: Final = 10.0

_PASSING: Final = (
    NotCoordinator,
    CoordinatorNotAvailable,
    CoordinatorLoadInProgress,
    NetworkException,
    RequestTimedOut,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
)


class Persister:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queues: dict[tuple[int, int, str], list[Errand]] = {}
        """What waits for a broker, by the kind's place in `_KINDS` and the group."""
        self._busy: dict[tuple[int, int, str], None] = {}
        self._is_creating = False
        self._is_closed = False

    # What is asked

    def read(self, key: ShareKey, leader_epoch: int, reply: Reply[Stored]) -> None:
        self._run(Errand(errands.READ, key, leader_epoch, reply))

    def write(self, key: ShareKey, written: Written, reply: Reply[bool]) -> None:
        self._run(Errand(errands.WRITE, key, written, reply))

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, reply: Reply[bool]) -> None:
        self._run(Errand(errands.INITIALIZE, key, (state_epoch, start_offset), reply))

    def delete(self, key: ShareKey, reply: Reply[bool]) -> None:
        self._run(Errand(errands.DELETE, key, None, reply))

    def summary(self, key: ShareKey, reply: Reply[Stored]) -> None:
        self._run(Errand(errands.SUMMARY, key, None, reply))

    def close(self) -> None:
        """Nothing is tried again."""
        self._is_closed = True

    # Finding the coordinator

    def _run(self, errand: Errand) -> None:
        broker = self._broker
        topic = broker.image.topics.named(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            self._create_topic()
            self._again(errand, CoordinatorNotAvailable())
            return
        registration = topic.partitions.get(partition_for(key_text(errand.key), len(topic.partitions)))
        leader = -1 if registration is None else registration.leader
        if leader == broker.node_id:
            reply: Reply[Any] = Reply(errand.reply.reply, lambda error: self._failed(errand, error))
            errand.kind.run_here(broker.share_state, errand, reply, broker.now_ms())
        elif leader < 0:
            self._again(errand, CoordinatorNotAvailable())
        else:
            place = (leader, _KINDS.index(errand.kind), errand.key.group_id)
            self._queues.setdefault(place, []).append(errand)
            if place not in self._busy:
                self._busy[place] = None
                broker.spawn(self._send_all(place))

    def _create_topic(self) -> None:
        if not self._is_creating:
            self._is_creating = True
            self._broker.spawn(self._create())

    async def _create(self) -> None:
        try:
            await self._broker.auto_create([SHARE_GROUP_STATE_TOPIC])
        except ApiError:
            # Whoever waits for it asks again.
            pass
        finally:
            self._is_creating = False

    # Another broker

    async def _send_all(self, place: tuple[int, int, str]) -> None:
        try:
            while found := self._queues.pop(place, None):
                await self._send(place, found)
        finally:
            del self._busy[place]

    async def _send(self, place: tuple[int, int, str], found: list[Errand]) -> None:
        node_id, kind_index, group_id = place
        kind = _KINDS[kind_index]
        # Two questions about one share partition make two requests.
        first, rest = _distinct(found)
        if rest:
            self._queues[place] = rest + self._queues.get(place, [])
        try:
            response = await self._broker.peers.request(
                node_id, PURPOSE, kind.request(group_id, first), kind.response, timeout_s=ANSWER_SECONDS_MAX
            )
        except ApiError as error:
            for errand in first:
                self._failed(errand, error)
            return
        results = {
            (topic.topic_id, result.partition): result for topic in response.results for result in topic.partitions
        }
        for errand in first:
            result = results.get((errand.key.topic_id, errand.key.partition))
            if result is None:
                self._failed(errand, UnknownServerError("the share coordinator has left out a partition"))
            elif result.error_code:
                error_class = by_code.get(result.error_code, UnknownServerError)
                self._failed(errand, error_class(result.error_message or ""))
            else:
                errand.reply.reply(kind.value(result))

    # Trying again

    def _failed(self, errand: Errand, error: ApiError) -> None:
        if isinstance(error, _PASSING):
            self._again(errand, error)
        else:
            errand.reply.fail(error)

    def _again(self, errand: Errand, error: ApiError) -> None:
        errand.tries += 1
        if errand.tries > TRIES_MAX or self._is_closed:
            errand.reply.fail(error)
            return
        pause_ms = min(FIRST_PAUSE_MS << (errand.tries - 1), PAUSE_MS_MAX)
        self._broker.deadlines.after(pause_ms, lambda: self._run(errand))


_KINDS: Final[tuple[Kind, ...]] = (errands.READ, errands.WRITE, errands.INITIALIZE, errands.DELETE, errands.SUMMARY)


def _distinct(found: list[Errand]) -> tuple[list[Errand], list[Errand]]:
    """The first about each share partition, and the others."""
    first: dict[ShareKey, Errand] = {}
    rest = []
    for errand in found:
        if errand.key in first:
            rest.append(errand)
        else:
            first[errand.key] = errand
    return list(first.values()), rest
