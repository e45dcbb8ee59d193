"""Invariants of the metadata that nodes publish: R6, R10, D3, D7, D9 and D10.

R6 images of the same offset are equal on all nodes. R10 a change that was confirmed to a client is in every later image
of the active controller; the offset of a node's image does not decrease. D3 a partition's epochs increase. D7 a replica
that joins the ISR has everything committed; a broker that was killed is in no ISR and not eligible when it registers
again. D9 the leader is in the ISR, the ISR is a subset of the replicas without fenced brokers, and elections choose
eligible replicas while there are any. D10 a running broker that can reach the controller is not fenced.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.topics import PartitionRegistration
from millbeck.simulation.observer.findings import Violations
from millbeck.simulation.observer.partition_watch import ReplicationFacts

CLUSTER: Final = "the cluster"
REMEMBERED_IMAGES: Final = 400


class MetadataFacts:
    """``newest`` is the published image with the highest offset."""

    def __init__(self, findings: Violations, data: ReplicationFacts) -> None:
        self.findings = findings
        self.newest: MetadataImage | None = None
        self.isr_change_count = 0
        self.confirmed: dict[str, None] = {}
        """Groups with a setting that was confirmed to a client."""
        self.unclean: dict[int, int] = {}
        """Brokers whose process was killed, with the broker epoch they had."""
        self.must_be_unfenced: Callable[[int, int], bool] = lambda broker_id, epoch: False
        """Whether the broker with that epoch is known to run and to reach the controller."""
        self._data = data
        self._images: dict[int, MetadataImage] = {}
        self._offsets: deque[int] = deque()
        data.newest_image = lambda: self.newest

    # Confirmations to clients.

    def setting_confirmed(self, group: str) -> None:
        """A client received confirmation of a setting for a group; settings are never removed."""
        self.confirmed[group] = None
        if self.newest is None or not self.newest.configs.of_group(group):
            self.findings.broken("R10", "a client", CLUSTER, -1, f"a setting of {group} is confirmed, not committed")

    def check_controller(self, node: str, image: MetadataImage) -> None:
        """Check the image of a controller that becomes active."""
        for group in self.confirmed:
            if not image.configs.of_group(group):
                self.findings.broken("R10", node, CLUSTER, image.offset, f"a confirmed setting of {group} is missing")

    # Published images.

    def published(self, node: str, before: MetadataImage | None, image: MetadataImage) -> None:
        if before is not None and image.offset < before.offset:
            self.findings.broken("R10", node, CLUSTER, image.offset, f"is published after {before.offset}")
        known = self._images.get(image.offset)
        if known is None:
            self._images[image.offset] = image
            self._offsets.append(image.offset)
            if len(self._offsets) > REMEMBERED_IMAGES:
                del self._images[self._offsets.popleft()]
        elif known is not image and known != image:
            self.findings.broken("R6", node, CLUSTER, image.offset, _difference(known, image))
        if self.newest is None or image.offset > self.newest.offset:
            newest, self.newest = self.newest, image
            self._check_partitions(node, newest, image)
            self._check_registrations(node, newest, image)
            if newest is not None:
                self._check_sessions(node, newest, image)

    def _check_partitions(self, node: str, before: MetadataImage | None, image: MetadataImage) -> None:
        for topic in image.topics.by_id.values():
            old_topic = None if before is None else before.topics.with_id(topic.topic_id)
            if old_topic is topic:
                continue
            for index, partition in topic.partitions.items():
                old = None if old_topic is None else old_topic.partitions.get(index)
                if old != partition:
                    self._check_state(node, topic.name, index, image, partition)
                    if old is not None:
                        self._check_step(node, topic.name, index, old, partition)
                        if before is not None:
                            self._check_election(node, topic.name, index, (before, image), (old, partition))

    def _check_state(
        self, node: str, topic: str, index: int, image: MetadataImage, partition: PartitionRegistration
    ) -> None:
        findings, name = self.findings, f"{topic}-{index}"
        if partition.has_leader and partition.leader not in partition.isr:
            findings.broken("D9", node, name, image.offset, f"{partition.leader} leads, {partition.isr} are in sync")
        if any(member not in partition.replicas for member in partition.isr):
            findings.broken("D9", node, name, image.offset, f"{partition.isr} are in sync, of {partition.replicas}")
        for member in partition.isr:
            broker = image.cluster.brokers.get(member)
            if broker is None or broker.is_fenced:
                findings.broken("D9", node, name, image.offset, f"{member} is in sync and fenced")

    def _check_step(
        self, node: str, topic: str, index: int, old: PartitionRegistration, new: PartitionRegistration
    ) -> None:
        findings, name = self.findings, f"{topic}-{index}"
        if old.isr != new.isr:
            self.isr_change_count += 1
        if new.partition_epoch <= old.partition_epoch or new.leader_epoch < old.leader_epoch:
            detail = f"epochs {new.leader_epoch} and {new.partition_epoch} follow {old}"
            findings.broken("D3", node, name, -1, detail)
        if new.leader != old.leader and new.leader_epoch <= old.leader_epoch:
            findings.broken("D3", node, name, -1, f"leader {new.leader} follows {old.leader} in the same epoch")
        facts = self._data.of(topic, index)
        for wounded in list(facts.wounded):
            if wounded not in new.isr and wounded not in new.eligible_leader_replicas:
                del facts.wounded[wounded]
        joined = tuple(member for member in new.isr if member not in old.isr)
        for member in joined:
            if member not in old.eligible_leader_replicas:
                facts.wounded.pop(member, None)
                facts.lossy.pop(member, None)
        self._data.check_members(facts, joined, "D7", "the node joins the ISR")

    def _check_election(
        self,
        node: str,
        topic: str,
        index: int,
        images: tuple[MetadataImage, MetadataImage],
        partitions: tuple[PartitionRegistration, PartitionRegistration],
    ) -> None:
        """An eligible replica stays eligible, unless its broker registers a new process in the same change."""
        old, new = partitions
        if not new.has_leader or new.partition_epoch != old.partition_epoch + 1:
            return
        registered = [image.cluster.brokers for image in images]
        eligible = [
            broker_id
            for broker_id in old.eligible_leader_replicas
            if [brokers[broker_id].epoch for brokers in registered if broker_id in brokers]
            == [registered[0][broker_id].epoch] * 2
        ]
        if eligible and new.leader not in (*old.isr, *old.eligible_leader_replicas):
            detail = f"{new.leader} is elected while {eligible} are eligible"
            self.findings.broken("D9", node, f"{topic}-{index}", -1, detail)

    def _check_registrations(self, node: str, before: MetadataImage | None, image: MetadataImage) -> None:
        """D7: a broker that was killed may have lost data; it must not count as in sync before it has caught up."""
        for broker_id, old_epoch in list(self.unclean.items()):
            broker = image.cluster.brokers.get(broker_id)
            if broker is None or broker.epoch == old_epoch:
                continue
            del self.unclean[broker_id]
            if not broker.is_fenced:
                continue
            for topic in image.topics.by_id.values():
                for index, partition in topic.partitions.items():
                    if broker_id in partition.isr or broker_id in partition.eligible_leader_replicas:
                        why = f"broker {broker_id} has restarted after an unclean shutdown"
                        detail = f"{why}, but is in the ISR or ELR of {partition}"
                        self.findings.broken("D7", node, f"{topic.name}-{index}", image.offset, detail)

    def _check_sessions(self, node: str, before: MetadataImage, image: MetadataImage) -> None:
        """D10: even a busy controller does not fence brokers that are alive."""
        for broker_id, broker in image.cluster.brokers.items():
            old = before.cluster.brokers.get(broker_id)
            is_news = old is not None and old.epoch == broker.epoch and broker.is_fenced and not old.is_fenced
            if is_news and self.must_be_unfenced(broker_id, broker.epoch):
                self.findings.broken(
                    "D10", node, CLUSTER, image.offset, f"broker {broker_id} is fenced although it is running"
                )


def _difference(one: MetadataImage, other: MetadataImage) -> str:
    for name in MetadataImage.__slots__:
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs:
            return f"{name}: {str(mine)[:300]} here, {str(theirs)[:300]} elsewhere"
    return "the images are not equal"
