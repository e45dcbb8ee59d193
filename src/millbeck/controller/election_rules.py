"""What an image says about changes of partitions: how many must be in sync, who may lead, how far an election may go.

One of these is made for a decision and shared by all the partitions it looks at; what topics' options say is resolved
once a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.partition_change import ChangeContext, Election, PartitionChange
from millbeck.metadata.image import MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.records import MetadataRecord

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
UNCLEAN_ELECTION: Final = "unclean.leader.election.enable"


class PlacedPartition(NamedTuple):
    """A partition and where it belongs."""

    topic: TopicImage
    partition_id: int
    partition: PartitionRegistration


class _TopicOptions(NamedTuple):
    min_insync_replicas: int
    election: Election


class ElectionRules:
    """``removed`` and ``unclean`` may lead nothing, ``added`` may although the image has it fenced."""

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

        def may_lead(broker_id: int) -> bool:
            broker = cluster.brokers.get(broker_id)
            if broker is None or broker.in_controlled_shutdown or broker_id in (removed, unclean):
                return False
            return not broker.is_fenced or broker_id == added

        self._context = ChangeContext(
            cluster=cluster,
            metadata_version=image.features.metadata_version,
            tracks_eligible_leaders=image.features.tracks_eligible_leaders,
            may_lead=may_lead,
        )
        self._defaults = self._options({})
        self._by_topic: dict[str, _TopicOptions] = {}

    def change(self, topic: TopicImage, partition: PartitionRegistration) -> PartitionChange:
        """A change of the partition that begins with what it is; elections go as far as the topic allows."""
        options = self.options_of(topic.name)
        return PartitionChange(
            partition, self._context, min_insync_replicas=options.min_insync_replicas, election=options.election
        )

    def changes(self, partitions: Iterable[PlacedPartition]) -> list[MetadataRecord]:
        """What the partitions become when ``removed`` and ``unclean`` are in sync no more and ``added`` is back."""
        records: list[MetadataRecord] = []
        leaving = (self._removed, self._unclean)
        for topic, partition_id, partition in partitions:
            change = self.change(topic, partition)
            change.unclean_shutdown = self._unclean
            if self._removed in partition.isr or self._unclean in partition.isr:
                change.isr = tuple([member for member in partition.isr if member not in leaving])
            record = change.build(topic.topic_id, partition_id)
            if record is not None:
                records.append(record)
        return records

    def options_of(self, topic: str) -> _TopicOptions:
        options = self._by_topic.get(topic)
        if options is None:
            overrides = self.image.configs.of_topic(topic)
            has_own = MIN_INSYNC_REPLICAS in overrides or UNCLEAN_ELECTION in overrides
            options = self._by_topic[topic] = self._options(overrides) if has_own else self._defaults
        return options

    def allows_unclean(self, topic: str) -> bool:
        return self.options_of(topic).election is Election.UNCLEAN

    def _options(self, overrides: Mapping[str, str]) -> _TopicOptions:
        configs = self.image.configs
        minimum = self._rules.topic_value(configs, overrides, MIN_INSYNC_REPLICAS)
        unclean = self._rules.topic_value(configs, overrides, UNCLEAN_ELECTION)
        assert isinstance(minimum, int)
        return _TopicOptions(minimum, Election.UNCLEAN if unclean else Election.ONLINE)


def partitions_where(image: MetadataImage, holds: Callable[[PartitionRegistration], bool]) -> Iterator[PlacedPartition]:
    """The partitions for which ``holds`` is true, in the order of their names.

    All partitions are looked at. That is a few milliseconds for ten thousand, and asked for only when a broker or a
    directory comes or goes; an index would have to be kept up with every change of every ISR.
    """
    for name in sorted(image.topics.by_name):
        topic = image.topics.by_name[name]
        for partition_id, partition in topic.partitions.items():
            if holds(partition):
                yield PlacedPartition(topic, partition_id, partition)
