"""What becomes of partitions when brokers come and go, with and without eligible leaders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import OptionRules, broker_changes
from millbeck.controller.result import finished
from millbeck.kernel.errors import StaleBrokerEpoch
from millbeck.metadata.image import MetadataImage, PartitionRegistration
from millbeck.metadata.image.topics import RECOVERING
from millbeck.metadata.records import BrokerRegistrationChangeRecord, PartitionChangeRecord

WithTopic = Callable[..., MetadataImage]
Rules = Callable[[], OptionRules]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


def first(image: MetadataImage) -> PartitionRegistration:
    return image.topics.by_name["t"].partitions[0]


@pytest.fixture
def rules(make_rules: Rules) -> OptionRules:
    return make_rules()


def test_a_fenced_broker_leads_nothing_and_is_in_sync_nowhere(
    three_brokers: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2]}, {"replicas": [2, 1]}, {"replicas": [1]}, {"replicas": [3]})
    records = finished(broker_changes.fenced(image, rules, image.cluster.brokers[1]))
    assert isinstance(records[-1], BrokerRegistrationChangeRecord)
    after = replayed(image, records)
    assert not after.cluster.is_active(1)
    partitions = after.topics.by_name["t"].partitions
    found = [(each.leader, each.isr, each.leader_epoch) for each in partitions.values()]
    # The last one in sync stays in the ISR: nobody else has the data.
    assert found == [(2, (2,), 6), (2, (2,), 5), (-1, (1,), 6), (3, (3,), 5)]
    assert partitions[3] is image.topics.by_name["t"].partitions[3]


def test_who_comes_back_leads_what_nobody_leads(
    three_brokers: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(three_brokers, {"replicas": [1]}, {"replicas": [1, 2]})
    image = replayed(image, finished(broker_changes.fenced(image, rules, image.cluster.brokers[1])))
    records = finished(broker_changes.unfenced(image, rules, image.cluster.brokers[1]))
    assert isinstance(records[0], BrokerRegistrationChangeRecord)
    assert len(records) == 2
    after = replayed(image, records)
    assert (first(after).leader, first(after).leader_epoch) == (1, 7)
    assert after.topics.by_name["t"].partitions[1].leader == 2


def test_a_broker_that_shuts_down_hands_over_before_it_is_fenced(
    three_brokers: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2, 3]})
    after = replayed(
        image, finished(broker_changes.records_for_controlled_shutdown(image, rules, image.cluster.brokers[1]))
    )
    assert after.cluster.brokers[1].in_controlled_shutdown
    assert not after.cluster.brokers[1].is_fenced
    assert (first(after).leader, first(after).isr) == (2, (2, 3))
    assert finished(broker_changes.records_for_controlled_shutdown(after, rules, after.cluster.brokers[1])) == []


@pytest.mark.parametrize("is_clean", [True, False])
def test_an_unclean_end_costs_eligibility(
    tracking: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed, is_clean: bool
) -> None:
    image = with_topic(
        tracking,
        {"replicas": [1, 2, 3], "isr": [1], "eligible_leader_replicas": [2, 3]},
        {"replicas": [1, 2, 3], "isr": [2, 3], "leader": 2},
        min_insync_replicas="2",
    )
    after = replayed(image, finished(broker_changes.restarted(image, rules, 2, is_clean=is_clean)))
    waiting, short = after.topics.by_name["t"].partitions.values()
    assert waiting.eligible_leader_replicas == ((2, 3) if is_clean else (3,))
    assert (short.isr, short.leader) == ((3,), 3)
    assert short.eligible_leader_replicas == ((2,) if is_clean else ())


def test_the_only_replica_leads_again_after_an_unclean_end(
    tracking: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(tracking, {"replicas": [1]})
    image = replayed(image, finished(broker_changes.fenced(image, rules, image.cluster.brokers[1])))
    assert (first(image).isr, first(image).eligible_leader_replicas, first(image).last_known_elr) == ((), (1,), (1,))
    image = replayed(image, finished(broker_changes.restarted(image, rules, 1, is_clean=False)))
    assert (first(image).isr, first(image).eligible_leader_replicas) == ((), ())
    image = replayed(image, finished(broker_changes.unfenced(image, rules, image.cluster.brokers[1])))
    assert (first(image).leader, first(image).isr, first(image).leader_recovery_state) == (1, (1,), RECOVERING)


def test_before_eligible_leaders_every_end_counts_as_clean(
    cluster_of: Callable[..., MetadataImage], with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(cluster_of(1, 2, levels={"metadata.version": 22}), {"replicas": [1, 2], "isr": [1]})
    after = replayed(image, finished(broker_changes.restarted(image, rules, 1, is_clean=False)))
    assert (first(after).isr, first(after).leader) == ((1,), -1)


def test_an_unregistered_broker_counts_nowhere(
    tracking: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(
        tracking, {"replicas": [1, 2, 3], "isr": [1], "eligible_leader_replicas": [2, 3]}, min_insync_replicas="2"
    )
    after = replayed(image, finished(broker_changes.unregistered(image, rules, image.cluster.brokers[2])))
    assert 2 not in after.cluster.brokers
    assert first(after).eligible_leader_replicas == (3,)
    after = replayed(after, finished(broker_changes.unregistered(after, rules, after.cluster.brokers[1])))
    assert (first(after).leader, first(after).isr) == (3, (3,))


def test_what_was_in_a_lost_directory_is_led_by_others(
    three_brokers: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    good, bad = b"good" * 4, b"bad-" * 4
    broker = replace(three_brokers.cluster.brokers[1], directories=(good, bad))
    image = replace(
        three_brokers, cluster=replace(three_brokers.cluster, brokers={**three_brokers.cluster.brokers, 1: broker})
    )
    other = image.cluster.brokers[2].directories[0]
    image = with_topic(
        image, {"replicas": [1, 2], "directories": [bad, other]}, {"replicas": [1, 2], "directories": [good, other]}
    )
    after = replayed(image, finished(broker_changes.records_for_offline_directories(image, rules, broker, [bad])))
    lost, kept = after.topics.by_name["t"].partitions.values()
    assert (lost.leader, lost.isr, kept.leader, kept.isr) == (2, (2,), 1, (1, 2))
    assert after.cluster.brokers[1].directories == (good,)
    assert finished(broker_changes.records_for_offline_directories(after, rules, after.cluster.brokers[1], [bad])) == []
    assert finished(broker_changes.records_for_offline_directories(image, rules, broker, [b"unknown-" * 2])) == []
    everything = finished(broker_changes.records_for_offline_directories(image, rules, broker, [good, bad]))
    assert all(isinstance(record, PartitionChangeRecord) for record in everything)


def test_only_the_registered_process_is_listened_to(three_brokers: MetadataImage) -> None:
    epoch = three_brokers.cluster.brokers[1].epoch
    assert broker_changes.check_broker_epoch(three_brokers, 1, epoch).broker_id == 1
    for broker_id, claimed in ((1, epoch + 1), (1, -1), (9, epoch)):
        with pytest.raises(StaleBrokerEpoch):
            broker_changes.check_broker_epoch(three_brokers, broker_id, claimed)


def test_who_leads_is_known(three_brokers: MetadataImage, with_topic: WithTopic) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2]})
    assert [broker_changes.leads_any(image, broker_id) for broker_id in (1, 2)] == [True, False]
    assert finished(broker_changes.after(image, [])) is image


def in_parts(
    image: MetadataImage, rules: OptionRules, replayed: Replayed, *, partitions_max: int
) -> tuple[MetadataImage, list[int]]:
    """The image with the broker fenced, and how many records each part had."""
    counts: list[int] = []
    while not image.cluster.brokers[1].is_fenced:
        records = finished(
            broker_changes.records_for_partial_fencing(
                image, rules, image.cluster.brokers[1], partitions_max=partitions_max
            )
        )
        counts.append(len(records))
        image = replayed(image, records)
    return image, counts


@pytest.mark.parametrize("is_tracking", [False, True])
@pytest.mark.parametrize("partitions_max", [1, 2, 3, 100])
def test_fencing_in_parts_comes_to_the_same_as_at_once(
    three_brokers: MetadataImage,
    tracking: MetadataImage,
    with_topic: WithTopic,
    rules: OptionRules,
    replayed: Replayed,
    is_tracking: bool,
    partitions_max: int,
) -> None:
    orders = [[1], [1, 2], [2, 1], [3], [1, 2, 3], [2, 3], [1], [3, 1, 2], [1]]
    image = with_topic(tracking if is_tracking else three_brokers, *({"replicas": order} for order in orders))
    after, counts = in_parts(image, rules, replayed, partitions_max=partitions_max)
    at_once = replayed(image, finished(broker_changes.fenced(image, rules, image.cluster.brokers[1])))
    assert after.topics.by_name["t"].partitions == at_once.topics.by_name["t"].partitions
    assert after.cluster.brokers[1].is_fenced
    # The seven partitions with a replica there, and the broker itself.
    assert sum(counts) == 8
    assert max(counts) <= partitions_max + 1


def test_a_broker_that_comes_into_an_isr_between_two_parts_is_taken_out_before_it_is_fenced(
    three_brokers: MetadataImage, with_topic: WithTopic, rules: OptionRules, replayed: Replayed
) -> None:
    image = with_topic(three_brokers, *({"replicas": [2, 1]} for _ in range(4)))
    broker = image.cluster.brokers[1]
    image = replayed(
        image, finished(broker_changes.records_for_partial_fencing(image, rules, broker, partitions_max=2))
    )
    assert not image.cluster.brokers[1].is_fenced
    back = PartitionChangeRecord(partition_id=0, topic_id=image.topics.by_name["t"].topic_id, isr=[2, 1])
    image = replayed(image, [back])
    after, _ = in_parts(image, rules, replayed, partitions_max=2)
    assert [each.isr for each in after.topics.by_name["t"].partitions.values()] == [(2,)] * 4
