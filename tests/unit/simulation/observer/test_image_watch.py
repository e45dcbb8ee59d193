"""The rules of published metadata, on images made of records."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage
from millbeck.metadata.image.topics import PartitionRegistration, TopicImage, TopicsImage
from millbeck.simulation.observer.findings import InvariantBroken, Violations
from millbeck.simulation.observer.image_watch import MetadataFacts
from millbeck.simulation.observer.partition_watch import ReplicationFacts

TOPIC_ID = b"\x07" * 16
PARTITION = PartitionRegistration(
    replicas=(1, 2, 3), directories=(bytes(16),) * 3, isr=(1, 2), leader=1, leader_epoch=4, partition_epoch=9
)


def facts() -> MetadataFacts:
    findings = Violations(lambda: 1.0)
    return MetadataFacts(findings, ReplicationFacts(findings, 2))


def broker(broker_id: int, *, epoch: int = 5, is_fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(broker_id=broker_id, epoch=epoch, incarnation_id=bytes(16), is_fenced=is_fenced)


def image(
    offset: int, partition: PartitionRegistration, brokers: list[BrokerRegistration] | None = None
) -> MetadataImage:
    topic = TopicImage(name="t", topic_id=TOPIC_ID, partitions={0: partition})
    known = brokers or [broker(1), broker(2), broker(3)]
    return MetadataImage(
        offset=offset,
        topics=TopicsImage(by_id={TOPIC_ID: topic}, by_name={"t": topic}),
        cluster=ClusterImage(brokers={each.broker_id: each for each in known}),
    )


def test_images_of_one_offset_are_equal_and_none_goes_back() -> None:
    known = facts()
    one = image(10, PARTITION)
    known.published("c1/1", None, one)
    known.published("c2/1", None, image(10, PARTITION))
    with pytest.raises(InvariantBroken, match="R6 on c2/1"):
        known.published("c2/1", None, image(10, replace(PARTITION, isr=(1,))))
    with pytest.raises(InvariantBroken, match="R10 on c1/1"):
        known.published("c1/1", one, image(9, PARTITION))


@pytest.mark.parametrize(
    "broken", [{"leader": 3}, {"isr": (1, 4)}], ids=["the leader is not in sync", "no replica is in sync"]
)
def test_a_partition_makes_sense(broken: dict[str, Any]) -> None:
    with pytest.raises(InvariantBroken, match="D9"):
        facts().published("c1/1", None, image(10, replace(PARTITION, **broken)))


def test_nobody_who_is_fenced_is_in_sync() -> None:
    with pytest.raises(InvariantBroken, match="D9"):
        facts().published("c1/1", None, image(10, PARTITION, [broker(1), broker(2, is_fenced=True)]))


def test_epochs_rise_and_changes_are_counted() -> None:
    known = facts()
    known.published("c1/1", None, image(10, PARTITION))
    known.published("c1/1", None, image(11, replace(PARTITION, isr=(1,), partition_epoch=10)))
    assert known.isr_change_count == 1
    with pytest.raises(InvariantBroken, match="D3"):
        known.published("c1/1", None, image(12, replace(PARTITION, leader=2, partition_epoch=11)))
    with pytest.raises(InvariantBroken, match="D3"):
        known.published("c1/1", None, image(13, replace(PARTITION, partition_epoch=3)))


def test_nobody_else_is_elected_while_somebody_is_eligible() -> None:
    before = replace(PARTITION, isr=(), leader=-1, eligible_leader_replicas=(2,))
    after = replace(PARTITION, isr=(3,), leader=3, leader_epoch=5, partition_epoch=10)
    known = facts()
    known.published("c1/1", None, image(10, before))
    with pytest.raises(InvariantBroken, match="D9"):
        known.published("c1/1", None, image(11, after))
    known = facts()
    known.published("c1/1", None, image(10, before))
    known.published("c1/1", None, image(11, after, [broker(1), broker(2, epoch=11, is_fenced=True), broker(3)]))
    assert known.findings.first is None


def test_who_ended_without_order_is_counted_on_nowhere_when_it_is_back() -> None:
    known = facts()
    known.published("c1/1", None, image(10, PARTITION))
    known.unclean[3] = 5
    counted = replace(PARTITION, eligible_leader_replicas=(3,), partition_epoch=10)
    with pytest.raises(InvariantBroken, match="D7"):
        known.published("c1/1", None, image(11, counted, [broker(1), broker(2), broker(3, epoch=11, is_fenced=True)]))


def test_what_was_confirmed_is_committed_and_stays() -> None:
    known = facts()
    known.published("c1/1", None, image(10, PARTITION))
    with pytest.raises(InvariantBroken, match="R10 on a client"):
        known.setting_confirmed("g")
    with pytest.raises(InvariantBroken, match="R10 on c2/1"):
        known.check_controller("c2/1", image(12, PARTITION))


def _is_one(expected: tuple[int, int] | None, broker_id: int, epoch: int) -> bool:
    return (broker_id, epoch) == expected


def test_nobody_alive_is_fenced() -> None:
    before = image(10, PARTITION)
    after = image(11, PARTITION, [broker(1), broker(2), broker(3, is_fenced=True)])
    for is_alive in (False, True):
        known = facts()
        unfenced = (3, 5) if is_alive else None
        known.must_be_unfenced = partial(_is_one, unfenced)
        known.published("c1/1", None, before)
        if is_alive:
            with pytest.raises(InvariantBroken, match="D10"):
                known.published("c1/1", before, after)
        else:
            known.published("c1/1", before, after)


def test_a_process_that_registers_anew_begins_fenced() -> None:
    known = facts()
    known.must_be_unfenced = lambda broker_id, epoch: True
    before = image(10, PARTITION)
    known.published("c1/1", None, before)
    known.published("c1/1", before, image(11, PARTITION, [broker(1), broker(2), broker(3, epoch=11, is_fenced=True)]))
    assert known.findings.first is None
