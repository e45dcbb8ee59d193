"""What Kafka 4.3 has not released, on a real node that is told to offer it: two-phase commit and dead-letter topics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli
from millbeck.client.blocking import Blocking
from millbeck.client.producer import Producer
from millbeck.client.producer.transactions import PreparedState
from millbeck.client.share import AcknowledgeType, ShareConsumer
from millbeck.testing import Broker, broker

TWO_PHASE = {"transactional.id": "payments", "transaction.two.phase.commit.enable": "true"}


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    settings = {"unstable.feature.versions.enable": "true", "transaction.two.phase.commit.enable": "true"}
    with broker(settings) as running:
        millbeck(running, "feature", "upgrade", "--feature", "transaction.version=3", "--feature", "share.version=2")
        yield running


def millbeck(node: Broker, *arguments: str) -> str:
    done = CliRunner().invoke(cli, [*arguments, "--bootstrap-server", node.bootstrap], prog_name="millbeck")
    assert done.exit_code == 0, done.output
    return done.stdout


def prepare(node: Broker, value: bytes, decided: PreparedState | None = None) -> PreparedState:
    """A producer that completes what is prepared, if it is told how, prepares something else, and is gone."""
    with Blocking() as blocking:
        settings = {"bootstrap.servers": node.bootstrap, **TWO_PHASE}
        producer = blocking.make(lambda environment: Producer(settings, environment=environment))
        blocking.run(producer.init_transactions(keeps_prepared=True))
        if decided is not None:
            blocking.run(producer.complete_transaction(decided))
        producer.begin_transaction()
        blocking.run(producer.enqueue("paid", value))
        return blocking.run(producer.prepare_transaction())


def test_a_prepared_transaction_outlives_producer_and_node_until_it_is_decided(node: Broker) -> None:
    state = prepare(node, b"one")
    node.kill()
    node.start()
    other = prepare(node, b"two", decided=state)
    assert other != state
    (row,) = json.loads(millbeck(node, "txn", "describe", "--transactional-id", "payments", "--output", "json"))
    assert row["state"] == "Ongoing"
    millbeck(node, "txn", "terminate", "--transactional-id", "payments")
    committed = millbeck(node, "consume", "paid", "--from-beginning", "--exit", "--isolation-level", "read_committed")
    assert committed.split() == ["one"]
    # A mistyped id is not created.
    mistyped = CliRunner().invoke(cli, ["txn", "terminate", "payment", "-b", node.bootstrap], prog_name="millbeck")
    assert (mistyped.exit_code, "TRANSACTIONAL_ID_NOT_FOUND" in mistyped.output) == (1, True)
    listed = json.loads(millbeck(node, "txn", "list", "--output", "json"))
    assert [each["transactional_id"] for each in listed] == ["payments"]


def test_what_a_share_group_rejects_is_shown_with_its_dead_letters(node: Broker) -> None:
    millbeck(node, "topic", "create", "orders")
    millbeck(node, "topic", "create", "dlq.jobs", "--config", "errors.deadletterqueue.group.enable=true")
    options = (
        "share.auto.offset.reset=earliest",
        "errors.deadletterqueue.topic.name=dlq.jobs",
        "errors.deadletterqueue.copy.record.enable=true",
    )
    millbeck(node, "config", "alter", "--group", "jobs", "--add-config", ",".join(options))
    with Blocking() as blocking:
        settings = {"bootstrap.servers": node.bootstrap}
        producer = blocking.make(lambda environment: Producer(settings, environment=environment))
        for number in range(3):
            blocking.run(producer.enqueue("orders", b"%d" % number, partition=0))
        blocking.run(producer.flush())
        sharing = {**settings, "group.id": "jobs", "share.acknowledgement.mode": "explicit"}
        consumer = blocking.make(lambda environment: ShareConsumer(sharing, environment=environment))
        consumer.subscribe(["orders"])
        seen = 0
        while seen < 3:
            for delivery in blocking.run(consumer.poll(timeout_s=1.0)):
                is_poison = delivery.record.value == b"1"
                consumer.acknowledge(delivery, AcknowledgeType.REJECT if is_poison else AcknowledgeType.ACCEPT)
                seen += 1
            blocking.run(consumer.commit())
        rows: list[dict[str, str]] = []
        for _ in range(50):
            rows = json.loads(millbeck(node, "share", "dead-letters", "jobs", "--output", "json"))
            if rows:
                break
        assert [(row["topic"], row["offset"], row["message"]) for row in rows] == [
            ("orders", "1", "Offset rejected by client.")
        ]
        (state,) = json.loads(millbeck(node, "share", "describe", "jobs", "--state", "--output", "json"))
        assert state["dead_letters"] == "dlq.jobs"
    with urlopen(node.metrics_url, timeout=30) as page:
        assert 'deadletterqueuerecordcount_total{group="jobs"} 1' in page.read().decode()
