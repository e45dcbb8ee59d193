"""Two members of a classic group share a topic, one leaves, and the other takes everything back."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from bench.systems import Node
from tests.interop.clients import DriverSession

PARTITIONS = 4
SETTLE_TIMEOUT_S = 60
TURN_MS = 700


class Members:
    """Members that are polled at the same time, as a rebalance needs; records are gathered from all of them."""

    def __init__(self) -> None:
        self.sessions: list[DriverSession] = []
        self.records: list[dict[str, Any]] = []

    def turn(self) -> list[list[int]]:
        for session in self.sessions:
            session.begin("poll", duration_ms=TURN_MS)
        answers = [session.finish() for session in self.sessions]
        for answer in answers:
            self.records += answer["records"]
        return [answer["assignment"] for answer in answers]

    def wait_until_balanced(self, until: Callable[[list[list[int]]], bool]) -> list[list[int]]:
        deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
        while True:
            assignments = self.turn()
            if until(assignments):
                return assignments
            assert time.monotonic() < deadline_s, f"the group did not settle: {assignments}"


def _shared_fairly(assignments: list[list[int]]) -> bool:
    return sorted(itertools.chain(*assignments)) == list(range(PARTITIONS)) and all(
        len(one) == 2 for one in assignments
    )


def _committed(admin: AdminClient, group: str, topic: str) -> list[int]:
    wanted = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    request = ConsumerGroupTopicPartitions(group, wanted)
    found = admin.list_consumer_group_offsets([request])[group].result(30)
    return [one.offset for one in found.topic_partitions]


def test_a_group_rebalances_as_members_come_and_go(
    new_driver: Callable[[str], DriverSession],
    new_topic: Callable[..., str],
    driver: DriverSession,
    node: Node,
    admin: AdminClient,
) -> None:
    topic = new_topic(partitions=PARTITIONS)
    group = f"group-{topic}"
    first_half = [{"partition": index % PARTITIONS, "value": f"first {index}"} for index in range(40)]
    driver.ask("produce", topic=topic, records=first_half)

    members = Members()
    members.sessions.append(new_driver(node.bootstrap))
    members.sessions[0].ask("join", group=group, topic=topic)
    members.wait_until_balanced(lambda found: found == [list(range(PARTITIONS))] and len(members.records) >= 40)

    members.sessions.append(new_driver(node.bootstrap))
    members.sessions[1].ask("join", group=group, topic=topic)
    members.wait_until_balanced(_shared_fairly)
    assert len(admin.describe_consumer_groups([group])[group].result(30).members) == 2

    second_half = [{"partition": index % PARTITIONS, "value": f"second {index}"} for index in range(40)]
    driver.ask("produce", topic=topic, records=second_half)
    expected = {record["value"] for record in first_half + second_half}
    members.wait_until_balanced(
        lambda found: _shared_fairly(found) and {one["value"] for one in members.records} == expected
    )

    members.sessions.pop().ask("leave")
    members.wait_until_balanced(lambda found: found == [list(range(PARTITIONS))])
    third = [{"partition": index % PARTITIONS, "value": f"third {index}"} for index in range(8)]
    driver.ask("produce", topic=topic, records=third)
    expected |= {record["value"] for record in third}
    members.wait_until_balanced(lambda _: {one["value"] for one in members.records} == expected)
    members.sessions.pop().ask("leave")

    assert _committed(admin, group, topic) == [22] * PARTITIONS
    description = admin.describe_consumer_groups([group])[group].result(30)
    assert (description.state.name, len(description.members)) == ("EMPTY", 0)
    for partition in range(PARTITIONS):
        values = [one["value"] for one in members.records if one["partition"] == partition]
        in_order = list(dict.fromkeys(values))
        assert [value.split()[0] for value in in_order] == ["first"] * 10 + ["second"] * 10 + ["third"] * 2
