"""Initialize and delete the persisted state of share partitions for share groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from millbeck.coordinator.group.share.context import PartitionStart, Place
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.errors import ApiError
from millbeck.server.loop.gather import ResultCollector

if TYPE_CHECKING:
    from millbeck.server.share.context import ShareContext
    from millbeck.server.share.persister import Persister

T = TypeVar("T")

Outcomes = Callable[[dict[Place, ApiError | None]], None]
"""Called with the result for each share partition, None for success."""


class ShareStateInitializer:
    def __init__(self, broker: ShareContext, persister: Persister) -> None:
        self._broker = broker
        self._persister = persister

    def initialize(self, group_id: str, state_epoch: int, beginnings: list[PartitionStart]) -> None:
        """Initialize the state of share partitions, and report the initialized ones to the group."""

        def finish(outcomes: dict[Place, ApiError | None]) -> None:
            done = [place for place, error in outcomes.items() if error is None]
            broker = self._broker
            reply: ResponseCallback[None] = ResponseCallback(lambda _: None, lambda _: None)
            broker.groups.write(group_id, lambda shard: shard.share.initialized(group_id, done, broker.now_ms()), reply)

        self.begin(group_id, state_epoch, beginnings, finish)

    def begin(self, group_id: str, state_epoch: int, beginnings: Sequence[PartitionStart], finish: Outcomes) -> None:
        gather: ResultCollector[tuple[Place, ApiError | None]] = ResultCollector(lambda found: finish(dict(found)))
        persister = self._persister
        for each in beginnings:
            key = ShareKey(group_id, each.topic_id, each.partition)
            place = (each.topic_id, each.partition)
            persister.initialize(key, state_epoch, each.start_offset, _outcome_of(gather, place))
        gather.close()

    def delete(self, group_id: str, places: Sequence[Place], finish: Outcomes) -> None:
        gather: ResultCollector[tuple[Place, ApiError | None]] = ResultCollector(lambda found: finish(dict(found)))
        for place in places:
            self._persister.delete(ShareKey(group_id, *place), _outcome_of(gather, place))
        gather.close()

    def before_deletion(self, group_ids: Sequence[str], then: Callable[[dict[str, ApiError]], None]) -> None:
        """Delete the persisted state of the share groups among these groups, which belong to one shard.

        ``then`` gets the groups whose state could not be deleted, with the error; these groups must be kept."""

        def found(places: dict[str, list[Place]]) -> None:
            gather: ResultCollector[dict[str, ApiError]] = ResultCollector(
                lambda kept: then({k: v for each in kept for k, v in each.items()})
            )
            for group_id, of_group in places.items():
                self._forget(group_id, of_group, gather.ask(lambda error, group_id=group_id: {group_id: error}))  # type: ignore[misc]
            gather.close()

        self._broker.groups.read(
            group_ids[0],
            lambda shard, _: shard.share.places_to_forget(group_ids),
            ResponseCallback(found, lambda _: then({})),
        )

    def _forget(self, group_id: str, places: list[Place], reply: ResponseCallback[dict[str, ApiError]]) -> None:
        def finish(outcomes: dict[Place, ApiError | None]) -> None:
            errors = [error for error in outcomes.values() if error is not None]
            reply.reply({group_id: errors[0]} if errors else {})

        self.delete(group_id, places, finish)


def _outcome_of(gather: ResultCollector[tuple[Place, ApiError | None]], place: Place) -> ResponseCallback[bool]:
    reply = gather.ask(lambda error: (place, error))
    return ResponseCallback(lambda _: reply.reply((place, None)), reply.fail)
