"""Delta of topics and partitions.

Each changed topic has a draft: its former partitions plus the changed ones. Subscribers read ``created``, ``deleted``
and ``changed_partitions``; a topic both created and deleted in one delta is in none of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.metadata.delta.map_changes import MapDelta
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.topics import PartitionRegistration, TopicImage, TopicsImage
from millbeck.metadata.records import (
    ClearElrRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class TopicDraft:
    """One changed topic; ``partitions.changed`` has the new and changed partitions."""

    __slots__ = ("image", "partitions")

    def __init__(self, image: TopicImage) -> None:
        self.image = image
        self.partitions: MapDelta[int, PartitionRegistration] = MapDelta(image.partitions)

    def apply(self) -> TopicImage:
        if not self.partitions.changed:
            return self.image
        return TopicImage(name=self.image.name, topic_id=self.image.topic_id, partitions=self.partitions.apply())


class TopicsDelta:
    """``created`` has names by topic id, in the order of creation; ``deleted`` has former topics by id."""

    __slots__ = ("_drafts", "_names", "created", "deleted", "image")

    def __init__(self, image: TopicsImage) -> None:
        self.image = image
        self.created: dict[Uuid, str] = {}
        self.deleted: dict[Uuid, TopicImage] = {}
        self._drafts: dict[Uuid, TopicDraft] = {}
        self._names: dict[str, Uuid | None] = {}

    def create(self, record: TopicRecord) -> None:
        if self._id_of(record.name) is not None:
            raise MetadataFault(f"topic {record.name} is created but already exists")
        if record.topic_id in self._drafts or record.topic_id in self.image.by_id:
            raise MetadataFault(f"topic id {uuid_text(record.topic_id)} is used twice")
        self._drafts[record.topic_id] = TopicDraft(TopicImage(name=record.name, topic_id=record.topic_id))
        self._names[record.name] = record.topic_id
        self.created[record.topic_id] = record.name

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic; returns its name."""
        name = self._draft(record.topic_id).image.name
        del self._drafts[record.topic_id]
        self._names[name] = None
        before = self.image.by_id.get(record.topic_id)
        if before is None:
            del self.created[record.topic_id]
        else:
            self.deleted[record.topic_id] = before
        return name

    def put_partition(self, record: PartitionRecord) -> None:
        partition = PartitionRegistration.from_record(record)
        self._draft(record.topic_id).partitions.put(record.partition_id, partition)

    def change_partition(self, record: PartitionChangeRecord) -> None:
        partitions = self._draft(record.topic_id).partitions
        partition = partitions.get(record.partition_id)
        if partition is None:
            raise MetadataFault(
                f"change of partition {record.partition_id} of topic {uuid_text(record.topic_id)}, which does not exist"
            )
        partitions.put(record.partition_id, partition.changed(record))

    def clear_eligible_leaders(self, record: ClearElrRecord) -> None:
        for topic_id in list(self._topic_ids(record.topic_name)):
            draft = self._draft(topic_id)
            partitions = draft.partitions.apply()
            for partition_id in sorted(partitions):
                partition = partitions[partition_id]
                if partition.eligible_leader_replicas or partition.last_known_elr:
                    change = PartitionChangeRecord(eligible_leader_replicas=[], last_known_elr=[])
                    draft.partitions.put(partition_id, partition.changed(change))

    def changed_partitions(self) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
        """All new and changed partitions, each with its topic before the delta (empty for a created topic)."""
        for draft in self._drafts.values():
            for partition_id, partition in draft.partitions.changed.items():
                assert partition is not None
                yield draft.image, partition_id, partition

    @property
    def changed_topic_ids(self) -> list[Uuid]:
        """Ids of new and changed topics, without deleted ones."""
        return [topic_id for topic_id, draft in self._drafts.items() if draft.partitions.changed or self._is_new(draft)]

    def apply(self) -> TopicsImage:
        if not self._drafts and not self.deleted:
            return self.image
        by_id = dict(self.image.by_id)
        by_name = dict(self.image.by_name)
        for topic_id, before in self.deleted.items():
            del by_id[topic_id]
            del by_name[before.name]
        for topic_id, draft in self._drafts.items():
            by_id[topic_id] = by_name[draft.image.name] = draft.apply()
        return TopicsImage(by_id=by_id, by_name=by_name)

    def _is_new(self, draft: TopicDraft) -> bool:
        return draft.image.topic_id in self.created

    def _draft(self, topic_id: Uuid) -> TopicDraft:
        draft = self._drafts.get(topic_id)
        if draft is None:
            topic = None if topic_id in self.deleted else self.image.by_id.get(topic_id)
            if topic is None:
                raise MetadataFault(f"change of topic {uuid_text(topic_id)}, which does not exist")
            draft = self._drafts[topic_id] = TopicDraft(topic)
        return draft

    def _id_of(self, name: str) -> Uuid | None:
        if name in self._names:
            return self._names[name]
        topic = self.image.by_name.get(name)
        return None if topic is None else topic.topic_id

    def _topic_ids(self, name: str) -> Iterator[Uuid]:
        if name:
            topic_id = self._id_of(name)
            if topic_id is None:
                raise MetadataFault(
                    f"eligible leader replicas of topic {name} are cleared, but the topic does not exist"
                )
            yield topic_id
            return
        yield from self._drafts
        for topic_id in self.image.by_id:
            if topic_id not in self._drafts and topic_id not in self.deleted:
                yield topic_id
