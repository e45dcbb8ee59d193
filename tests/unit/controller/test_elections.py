from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller, OptionRules, elections
from millbeck.controller.result import finished
from millbeck.kernel.errors import InvalidRequest, PolicyViolation
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.topics import RECOVERING
from millbeck.wire.messages.replicas import ElectLeadersRequest, ElectLeadersTopicPartitions

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
PREFERRED, UNCLEAN = 0, 1


@pytest.fixture
def image(three_brokers: MetadataImage, with_topic: WithTopic) -> MetadataImage:
    """Led by the preferred, by another, by another because the preferred is behind, by nobody, by nobody alive."""
    fenced = replace(three_brokers.cluster.brokers[3], is_fenced=True)
    three_brokers = replace(
        three_brokers, cluster=replace(three_brokers.cluster, brokers={**three_brokers.cluster.brokers, 3: fenced})
    )
    return with_topic(
        three_brokers,
        {"replicas": [1, 2]},
        {"replicas": [1, 2], "leader": 2},
        {"replicas": [1, 2], "leader": 2, "isr": [2]},
        {"replicas": [3, 1], "leader": -1, "isr": [3]},
        {"replicas": [3], "leader": -1, "isr": [3]},
    )


def elected(
    controller: Controller, image: MetadataImage, kind: int, partitions: list[int] | None
) -> tuple[dict[int, int], list[Any]]:
    named = None if partitions is None else [ElectLeadersTopicPartitions("t", partitions)]
    result = finished(controller.elect_leaders(image, ElectLeadersRequest(kind, named)))
    [topic] = result.response.replica_election_results
    return {answer.partition_id: answer.error_code for answer in topic.partition_result}, result.records


def test_preferred_replicas_lead_again(controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
    codes, records = elected(controller, image, PREFERRED, [0, 1, 2, 3, 9])
    assert codes == {0: 84, 1: 0, 2: 80, 3: 80, 9: 3}
    partitions = replayed(image, records).topics.by_name["t"].partitions
    assert [partition.leader for partition in partitions.values()] == [1, 1, 2, -1, -1]


def test_an_unclean_election_is_for_what_nobody_leads(
    controller: Controller, image: MetadataImage, replayed: Replayed
) -> None:
    codes, records = elected(controller, image, UNCLEAN, [0, 1, 3, 4])
    assert codes == {0: 84, 1: 84, 3: 0, 4: 83}
    partition = replayed(image, records).topics.by_name["t"].partitions[3]
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (1, (1,), RECOVERING)


def test_of_all_partitions_those_that_need_none_are_not_told_of(controller: Controller, image: MetadataImage) -> None:
    assert elected(controller, image, PREFERRED, None)[0] == {1: 0, 2: 80, 3: 80, 4: 80}


def test_unknown_topics_and_kinds_are_refused(controller: Controller, image: MetadataImage) -> None:
    request = ElectLeadersRequest(PREFERRED, [ElectLeadersTopicPartitions("x", [0])])
    [topic] = finished(controller.elect_leaders(image, request)).response.replica_election_results
    assert topic.partition_result[0].error_code == 3
    with pytest.raises(InvalidRequest):
        finished(controller.elect_leaders(image, ElectLeadersRequest(2, None)))


def test_too_many_at_once_are_refused(
    controller: Controller, image: MetadataImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elections, "RECORD_COUNT_MAX", 0)
    with pytest.raises(PolicyViolation):
        elected(controller, image, PREFERRED, None)


def test_leadership_goes_back_by_itself(
    image: MetadataImage, make_rules: Callable[[], OptionRules], replayed: Replayed, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = finished(elections.balance_leaders(image, make_rules()))
    assert (result.response, len(result.records)) == (False, 1)
    after = replayed(image, result.records)
    assert after.topics.by_name["t"].partitions[1].leader == 1
    assert finished(elections.balance_leaders(after, make_rules())).records == []
    monkeypatch.setattr(elections, "ELECTION_COUNT_MAX", 1)
    assert finished(elections.balance_leaders(image, make_rules())).response


def test_unclean_elections_happen_by_themselves_where_they_are_allowed(
    image: MetadataImage,
    make_rules: Callable[[], OptionRules],
    with_topic: WithTopic,
    replayed: Replayed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert finished(elections.elect_unclean_leaders(image, make_rules())).records == []
    lost = {"replicas": [3, 1], "leader": -1, "isr": [3]}
    image = with_topic(image, lost, name="risky", topic_id=b"r" * 16, unclean_leader_election_enable="true")
    result = finished(elections.elect_unclean_leaders(image, make_rules()))
    assert result.response is False
    after = replayed(image, result.records)
    assert after.topics.by_name["risky"].partitions[0].leader == 1
    assert after.topics.by_name["t"] is image.topics.by_name["t"]
    monkeypatch.setattr(elections, "ELECTION_COUNT_MAX", 1)
    assert finished(elections.elect_unclean_leaders(image, make_rules())).response


def test_one_bad_partition_does_not_stop_the_elections_of_the_others(
    image: MetadataImage,
    make_rules: Callable[[], OptionRules],
    with_topic: WithTopic,
    replayed: Replayed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    image = with_topic(image, {"replicas": [1, 2], "leader": 2}, name="bad", topic_id=b"b" * 16)
    lost = {"replicas": [3, 1], "leader": -1, "isr": [3]}
    for name in ("bad-too", "risky"):
        image = with_topic(
            image, lost, name=name, topic_id=name.encode().ljust(16), unclean_leader_election_enable="true"
        )
    original = elections._elected

    def elected_unless_bad(rules: Any, placed: Any, election: Any) -> Any:
        if placed.topic.name.startswith("bad"):
            raise ValueError(placed.topic.name)
        return original(rules, placed, election)

    monkeypatch.setattr(elections, "_elected", elected_unless_bad)
    rules = make_rules()
    balanced = replayed(image, finished(elections.balance_leaders(image, rules)).records)
    assert [balanced.topics.by_name[name].partitions[index].leader for name, index in (("bad", 0), ("t", 1))] == [2, 1]
    elected = replayed(image, finished(elections.elect_unclean_leaders(image, rules)).records)
    assert [elected.topics.by_name[name].partitions[0].leader for name in ("bad-too", "risky")] == [-1, 1]
    assert rules.isolation.failure_count == 3
