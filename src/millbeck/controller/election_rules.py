"""The rules for partition changes in an image: min ISR, eligible leaders, and whether unclean elections are allowed.

One context is created per decision and shared by all its partitions; topic options are resolved once per topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.partition_change import ChangeContext, ElectionMode, PartitionChange
from millbeck.controller.result import PARTITIONS_AT_ONCE, RECORDS_AT_ONCE, Steps
from millbeck.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.records import MetadataRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class TopicPartitionRegistration(NamedTuple):
    """A partition with its topic."""

    topic: TopicImage
    partition_id: int
    partition: PartitionRegistration


class _TopicOptions(NamedTuple):
    min_insync_replicas: int
    election: ElectionMode


class ElectionContext:
    """The context of elections: brokers in ``removed`` and ``unclean`` cannot lead; the broker ``added`` can, although
    it is fenced in the image."""

    def __init__(
        self,
        image: MetadataImage,
        rules: ConfigRules,
        *,
        removed: int | None = None,
        added: int | None = None,
        unclean: int | None = None,
    ) -> None:
        self.image = image
        self._rules = rules
        self._removed = removed
        self._unclean = unclean
        cluster = image.cluster

        def is_acceptable_leader(broker_id: int) -> bool:
            broker = cluster.brokers.get(broker_id)
            if broker is None or broker.in_controlled_shutdown or broker_id in (removed, unclean):
                return False
            return not broker.is_fenced or broker_id == added

        self._context = ChangeContext(
            cluster=cluster,
            metadata_version=image.features.metadata_version,
            tracks_eligible_leaders=image.features.tracks_eligible_leaders,
            is_acceptable_leader=is_acceptable_leader,
        )
        self._defaults = self._options({})
        self._by_topic: dict[str, _TopicOptions] = {}

    def change(self, topic: TopicImage, partition: PartitionRegistration) -> PartitionChange:
        """A change that starts from the partition's current state, with unclean elections if the topic's config allows
        them."""
        options = self.options_of(topic.name)
        return PartitionChange(
            partition, self._context, min_insync_replicas=options.min_insync_replicas, election=options.election
        )

    def changes(self, partitions: Iterable[TopicPartitionRegistration | None]) -> Steps[list[MetadataRecord]]:
        """The changes of partitions when ``removed`` and ``unclean`` leave the ISR and ``added`` can lead again."""
        records: list[MetadataRecord] = []
        count = 0
        leaving = (self._removed, self._unclean)
        for placed in partitions:
            count += 1
            if placed is None or count % RECORDS_AT_ONCE == 0:
                yield
            if placed is None:
                continue
            topic, partition_id, partition = placed
            try:
                change = self.change(topic, partition)
                change.unclean_shutdown = self._unclean
                if self._removed in partition.isr or self._unclean in partition.isr:
                    change.isr = tuple([member for member in partition.isr if member not in leaving])
                record = change.build(topic.topic_id, partition_id)
            except Exception as error:
                self._rules.isolation.failed(("change of partition", topic.name, partition_id), error)
                continue
            if record is not None:
                records.append(record)
        return records

    def options_of(self, topic: str) -> _TopicOptions:
        options = self._by_topic.get(topic)
        if options is None:
            overrides = self.image.configs.of_topic(topic)
            has_own = MIN_INSYNC_REPLICAS in overrides or UNCLEAN_ELECTION in overrides
            options = self._defaults
            if has_own:
                # A stored value that this version does not accept must not keep the topic without a leader.
                entity = ("options of topic", topic)
                options = self._rules.isolation.run(entity, partial(self._options, overrides)) or self._defaults
            self._by_topic[topic] = options
        return options

    def allows_unclean(self, topic: str) -> bool:
        return self.options_of(topic).election is ElectionMode.UNCLEAN

    def _options(self, overrides: Mapping[str, str]) -> _TopicOptions:
        configs = self.image.configs
        minimum = self._rules.topic_value(configs, overrides, MIN_INSYNC_REPLICAS)
        unclean = self._rules.topic_value(configs, overrides, UNCLEAN_ELECTION)
        assert isinstance(minimum, int)
        return _TopicOptions(minimum, ElectionMode.UNCLEAN if unclean else ElectionMode.ONLINE)


def find_partitions(
    image: MetadataImage, holds: Callable[[PartitionRegistration], bool]
) -> Iterator[TopicPartitionRegistration | None]:
    """Yield the partitions for which ``holds`` is true, by name, and None after each thousand examined.

    All partitions are examined. That takes a few milliseconds for ten thousand partitions, and is needed only when a
    broker or directory is added or fails; an index would have to be updated with every ISR change.
    """
    count = 0
    for name in sorted(image.topics.by_name):
        topic = image.topics.by_name[name]
        for partition_id, partition in topic.partitions.items():
            count += 1
            if count % PARTITIONS_AT_ONCE == 0:
                yield None
            if holds(partition):
                yield TopicPartitionRegistration(topic, partition_id, partition)
