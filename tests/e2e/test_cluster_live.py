"""Three real processes as one cluster, with clients that are not ours."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata, NewTopic

from millbeck.testing import cluster

COUNT = 600


def test_a_killed_node_loses_nothing_and_comes_back(tmp_path: Path) -> None:
    fast = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 300}
    with cluster(fast, nodes=3, data=tmp_path) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic("t", 3, 3)])["t"].result(30)
        metadata = _metadata_with(admin, "t")
        assert sorted(metadata.brokers) == [1, 2, 3]
        assert {len(each.replicas) for each in metadata.topics["t"].partitions.values()} == {3}
        producer = Producer({"bootstrap.servers": running.bootstrap, "enable.idempotence": True, "linger.ms": 1})
        failures: list[str] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(str(error))

        for number in range(COUNT):
            producer.produce("t", b"%d" % number, on_delivery=delivered)
            producer.poll(0.001)
            if number == COUNT // 3:
                running.node(2).kill()
        assert producer.flush(60) == 0
        assert failures == []
        running.node(2).start()
        assert _consumed(running.bootstrap) == {b"%d" % number for number in range(COUNT)}
        running.stop()
        running.start()
        assert _consumed(running.bootstrap, group="again") == {b"%d" % number for number in range(COUNT)}


def _metadata_with(admin: AdminClient, topic: str) -> ClusterMetadata:
    """Polls: a broker may replay the records of a topic a moment after the controller has answered its creation."""
    deadline = time.monotonic() + 30
    while topic not in (metadata := admin.list_topics(timeout=30)).topics:
        assert time.monotonic() < deadline, f"no broker knows {topic}"
        time.sleep(0.1)
    return metadata


def _consumed(bootstrap: str, group: str = "g") -> set[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    seen: list[bytes] = []
    deadline = time.monotonic() + 90
    while len(seen) < COUNT and time.monotonic() < deadline:
        messages = consumer.consume(500, timeout=0.5)
        seen += [message.value() or b"" for message in messages if message.error() is None]
    consumer.close()
    assert len(seen) == len(set(seen))
    return set(seen)
