"""What share groups ask of the share coordinators: to let share partitions begin, and to forget them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from millbeck.coordinator.group.share.surroundings import Begin, Place
from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.errors import ApiError
from millbeck.server.handlers.gather import Gather

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

T = TypeVar("T")

Outcomes = Callable[[dict[Place, ApiError | None]], None]
"""Gets the outcome for each share partition, None for success."""


class Keeper:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def initialize(self, group_id: str, state_epoch: int, beginnings: list[Begin]) -> None:
        """Let share partitions begin, and tell the group which have."""

        def finish(outcomes: dict[Place, ApiError | None]) -> None:
            done = [place for place, error in outcomes.items() if error is None]
            broker = self._broker
            reply: Reply[None] = Reply(lambda _: None, lambda _: None)
            broker.groups.write(group_id, lambda shard: shard.share.initialized(group_id, done, broker.now_ms()), reply)

        self.begin(group_id, state_epoch, beginnings, finish)

    def begin(self, group_id: str, state_epoch: int, beginnings: Sequence[Begin], finish: Outcomes) -> None:
        gather: Gather[tuple[Place, ApiError | None]] = Gather(lambda found: finish(dict(found)))
        persister = self._broker.shares.persister
        for each in beginnings:
            key = ShareKey(group_id, each.topic_id, each.partition)
            place = (each.topic_id, each.partition)
            persister.initialize(key, state_epoch, each.start_offset, _outcome_of(gather, place))
        gather.close()

    def delete(self, group_id: str, places: Sequence[Place], finish: Outcomes) -> None:
        gather: Gather[tuple[Place, ApiError | None]] = Gather(lambda found: finish(dict(found)))
        for place in places:
            self._broker.shares.persister.delete(ShareKey(group_id, *place), _outcome_of(gather, place))
        gather.close()

    def before_deletion(self, group_ids: Sequence[str], then: Callable[[dict[str, ApiError]], None]) -> None:
        """Make the share coordinators forget the share groups among these, which are of one shard.

        ``then`` gets those that must be kept because they could not, and why."""

        def found(places: dict[str, list[Place]]) -> None:
            gather: Gather[dict[str, ApiError]] = Gather(
                lambda kept: then({k: v for each in kept for k, v in each.items()})
            )
            for group_id, of_group in places.items():
                self._forget(group_id, of_group, gather.ask(lambda error, group_id=group_id: {group_id: error}))  # type: ignore[misc]
            gather.close()

        self._broker.groups.read(
            group_ids[0], lambda shard, _: shard.share.places_to_forget(group_ids), Reply(found, lambda _: then({}))
        )

    def _forget(self, group_id: str, places: list[Place], reply: Reply[dict[str, ApiError]]) -> None:
        def finish(outcomes: dict[Place, ApiError | None]) -> None:
            errors = [error for error in outcomes.values() if error is not None]
            reply.reply({group_id: errors[0]} if errors else {})

        self.delete(group_id, places, finish)


def _outcome_of(gather: Gather[tuple[Place, ApiError | None]], place: Place) -> Reply[bool]:
    reply = gather.ask(lambda error: (place, error))
    return Reply(lambda _: reply.reply((place, None)), reply.fail)
