"""Groups in which the broker assigns (KIP-848): librdkafka's and Java's members, alone, together, and in migration."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import Node
from tests.interop.clients import CLIENTS, DriverSession
from tests.interop.cluster import run_tool, until

PARTITIONS = 6
SETTLE_TIMEOUT_S = 90
TURN_MS = 400
BROKER_ASSIGNS = {"group.protocol": "consumer"}
JAVA, LIBRDKAFKA = "java", "confluent-kafka"
COOPERATIVE = {
    JAVA: {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
    LIBRDKAFKA: {"partition.assignment.strategy": "cooperative-sticky"},
}
EAGER = {
    JAVA: {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor"},
    LIBRDKAFKA: {"partition.assignment.strategy": "range"},
}


class Members:
    """Members of one group that are polled at the same time."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._bootstrap = bootstrap
        self.group = group
        self._topic = topic
        self.sessions: list[DriverSession] = []
        self.records: list[dict[str, Any]] = []

    def add(self, client: str, settings: dict[str, str], **more: Any) -> DriverSession:
        session = DriverSession(CLIENTS[client], self._bootstrap)
        session.ask("join", group=self.group, topic=self._topic, settings=settings, **more)
        self.sessions.append(session)
        return session

    def remove(self, session: DriverSession) -> None:
        self.sessions.remove(session)
        session.ask("leave")
        session.close()

    def turn(self) -> list[list[int]]:
        for session in self.sessions:
            session.begin("poll", duration_ms=TURN_MS)
        answers = [session.finish() for session in self.sessions]
        for answer in answers:
            self.records += answer["records"]
        return [answer["assignment"] for answer in answers]

    def wait_until_balanced(self, partition_count: int = PARTITIONS) -> list[list[int]]:
        """Until everything is somebody's and nobody has more than others by more than one."""
        deadline_s = time.monotonic() + SETTLE_TIMEOUT_S
        while True:
            found = self.turn()
            sizes = [len(one) for one in found]
            if sorted(itertools.chain(*found)) == list(range(partition_count)) and max(sizes) - min(sizes) <= 1:
                return found
            assert time.monotonic() < deadline_s, f"the group did not settle: {found}"

    def close(self) -> None:
        for session in self.sessions:
            session.close()


@pytest.fixture
def members(node: Node, new_topic: Callable[..., str]) -> Iterator[Members]:
    topic = new_topic(partitions=PARTITIONS)
    found = Members(node.bootstrap, f"group-{topic}", topic)
    yield found
    found.close()


def _produce(node: Node, members: Members, count: int, word: str) -> None:
    producer = DriverSession(CLIENTS[LIBRDKAFKA], node.bootstrap)
    records = [{"partition": index % PARTITIONS, "value": f"{word} {index}"} for index in range(count)]
    producer.ask("produce", topic=members._topic, records=records)
    producer.close()


def _produce_to(node: Node, topic: str) -> None:
    producer = DriverSession(CLIENTS[LIBRDKAFKA], node.bootstrap)
    producer.ask("produce", topic=topic, records=[{"partition": 0, "value": "late"}])
    producer.close()


def _type_and_state(node: Node, group: str) -> tuple[str, str]:
    done = run_tool("kafka-consumer-groups", "--bootstrap-server", node.bootstrap, "--list", "--type", "--state")
    rows = [line.split() for line in done.stdout.splitlines()]
    return next((row[1], row[2]) for row in rows if row and row[0] == group)


@pytest.mark.parametrize("clients", [(LIBRDKAFKA, LIBRDKAFKA), (JAVA, JAVA), (LIBRDKAFKA, JAVA)])
def test_members_share_come_and_go(node: Node, members: Members, clients: tuple[str, str]) -> None:
    _produce(node, members, 60, "first")
    members.add(clients[0], BROKER_ASSIGNS)
    assert members.wait_until_balanced() == [list(range(PARTITIONS))]
    second = members.add(clients[1], BROKER_ASSIGNS)
    before = members.wait_until_balanced()
    assert sorted(map(len, before)) == [3, 3]
    _produce(node, members, 60, "second")
    until(lambda: members.turn() is not None and len(members.records) >= 120, "reading 120 records")
    members.remove(second)
    assert members.wait_until_balanced() == [list(range(PARTITIONS))]
    values = [record["value"] for record in members.records]
    assert sorted(values) == sorted(f"{word} {index}" for word in ("first", "second") for index in range(60))


@pytest.mark.parametrize("client", [LIBRDKAFKA, JAVA])
@pytest.mark.parametrize("kind", ["cooperative", "eager"])
def test_a_classic_group_is_migrated_up_and_down(node: Node, members: Members, client: str, kind: str) -> None:
    classic = (COOPERATIVE if kind == "cooperative" else EAGER)[client]
    old = [members.add(client, classic) for _ in range(2)]
    members.wait_until_balanced()
    new = members.add(client, BROKER_ASSIGNS)
    assert sorted(map(len, members.wait_until_balanced())) == [2, 2, 2]
    assert _type_and_state(node, members.group)[0] == "Consumer"
    members.remove(old[0])
    assert sorted(map(len, members.wait_until_balanced())) == [3, 3]
    members.remove(new)
    assert members.wait_until_balanced() == [list(range(PARTITIONS))]
    assert _type_and_state(node, members.group)[0] == "Classic"
    members.add(client, BROKER_ASSIGNS)
    members.remove(old[1])
    assert members.wait_until_balanced() == [list(range(PARTITIONS))]
    assert _type_and_state(node, members.group)[0] == "Consumer"


@pytest.mark.parametrize("client", [LIBRDKAFKA, JAVA])
def test_an_expression_follows_the_topics(
    node: Node, members: Members, client: str, new_topic: Callable[..., str]
) -> None:
    session = members.add(client, BROKER_ASSIGNS, pattern=f"{re.escape(members._topic)}|topic-.*-late-{client}")
    until(lambda: members.turn() == [list(range(PARTITIONS))], "an assignment")
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    name = f"topic-x-late-{client}"
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    # Java's driver tells partitions apart by their number alone, so a second partition 0 may not show.
    _produce_to(node, name)
    until(lambda: members.turn() is not None and "late" in [one["value"] for one in members.records], "the late topic")
    assert session.alive


def test_librdkafka_s_admin_describes_a_group(node: Node, members: Members) -> None:
    members.add(LIBRDKAFKA, BROKER_ASSIGNS)
    members.wait_until_balanced()
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    described = admin.describe_consumer_groups([members.group])[members.group].result(30)
    assert (described.type.name, described.state.name) == ("CONSUMER", "STABLE")
    assert described.partition_assignor == "uniform"
    (member,) = described.members
    assert sorted(each.partition for each in member.assignment.topic_partitions) == list(range(PARTITIONS))
    assert member.target_assignment.topic_partitions == member.assignment.topic_partitions


def test_kafka_s_tool_shows_resets_and_deletes_a_group(node: Node, members: Members, tmp_path: Path) -> None:
    def tool(*arguments: str) -> str:
        done = run_tool("kafka-consumer-groups", "--bootstrap-server", node.bootstrap, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    _produce(node, members, 60, "one")
    session = members.add(JAVA, BROKER_ASSIGNS)
    until(lambda: members.turn() is not None and len(members.records) >= 60, "reading 60 records")
    group, topic = members.group, members._topic
    described = tool("--describe", "--group", group)
    rows = [line.split() for line in described.splitlines() if line.startswith(group)]
    assert sorted(int(row[2]) for row in rows) == list(range(PARTITIONS))
    assert {row[5] for row in rows} == {"0"}
    assert "uniform" in tool("--describe", "--group", group, "--state")
    verbose = tool("--describe", "--group", group, "--members", "--verbose")
    assert f"{topic}:0,1,2,3,4,5" in verbose
    members.remove(session)
    until(lambda: _type_and_state(node, group) == ("Consumer", "Empty"), "an empty group")
    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-earliest")
    assert "0" in tool(*reset, "--dry-run")
    tool(*reset, "--execute")
    rows = [line.split() for line in tool("--describe", "--group", group).splitlines() if line.startswith(group)]
    assert {row[3] for row in rows} == {"0"}
    tool("--delete-offsets", "--group", group, "--topic", topic)
    tool("--delete", "--group", group)
    assert group not in tool("--list")


def test_kafka_s_tool_reads_the_group_s_records(node: Node, members: Members) -> None:
    members.add(LIBRDKAFKA, BROKER_ASSIGNS)
    members.wait_until_balanced()
    logs = sorted(Path(node.directory).glob("**/__consumer_offsets-*/*.log"))
    done = run_tool(
        "kafka-dump-log", "--offsets-decoder", "--files", ",".join(str(path) for path in logs if path.stat().st_size)
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if members.group in line]
    # The group, its members, the target's epoch, targets, and what members have.
    for record_type in (3, 5, 6, 7, 8):
        assert any(f'"type":"{record_type}"' in line for line in lines), done.stdout[-3000:]
    assert '"assignedPartitions":[{"topicId":' in done.stdout
    assert "Failed to decode" not in done.stdout
