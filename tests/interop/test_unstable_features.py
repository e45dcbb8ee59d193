"""What Kafka 4.3 has not released, with its own tools and Java's share consumer: only where a node offers it.

Levels are raised by kafka-features; what a Java consumer rejects is found in the dead-letter topic by Java's console
consumer, and both logs are decoded; a prepared transaction is ended by kafka-transactions.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as Librdkafka
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node
from millbeck.client.blocking import Blocking
from millbeck.client.producer import Producer
from tests.interop.cluster import TOOLS, run_tool, until
from tests.interop.test_share import SETTINGS, _console, _dumped, _group

TOOLS.setdefault("kafka-transactions", "org.apache.kafka.tools.TransactionsCommand")
TOOLS.setdefault("kafka-console-consumer", "org.apache.kafka.tools.consumer.ConsoleConsumer")
UNSTABLE = {
    "unstable.feature.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "2",
}


@pytest.fixture(scope="module")
def unstable_node(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    if system != "millbeck":
        pytest.skip("Kafka 4.3 does not have these levels")
    with SYSTEMS[system](tmp_path_factory.mktemp("unstable"), overrides=SETTINGS | UNSTABLE) as node:
        for level in ("share.version=2", "transaction.version=3"):
            _run(node, "kafka-features", "upgrade", "--feature", level)
        yield node


def _run(node: Node, tool: str, *arguments: str) -> str:
    done = run_tool(tool, "--bootstrap-server", node.bootstrap, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_a_java_consumer_rejects_is_in_the_dead_letter_topic(unstable_node: Node) -> None:
    admin = AdminClient({"bootstrap.servers": unstable_node.bootstrap})
    dead = NewTopic("dlq.jobs", 1, 1, config={"errors.deadletterqueue.group.enable": "true"})
    for made in admin.create_topics([NewTopic("jobs", 1, 1), dead]).values():
        made.result(30)
    group = _group(
        unstable_node,
        "workers",
        errors_deadletterqueue_topic_name="dlq.jobs",
        errors_deadletterqueue_copy_record_enable="true",
    )
    producer = Librdkafka({"bootstrap.servers": unstable_node.bootstrap})
    producer.produce("jobs", "poison", "key", 0)
    assert producer.flush(30) == 0
    printed = _console(unstable_node, "jobs", group, "--reject", "--timeout-ms", "8000").communicate(timeout=100)[0]
    assert printed.split() == ["poison"]
    arguments = ("--topic", "dlq.jobs", "--from-beginning", "--timeout-ms", "8000", "--max-messages", "1")
    letter = _run(unstable_node, "kafka-console-consumer", *arguments, "--formatter-property", "print.headers=true")
    headers, value = letter.split("\n")[0].rsplit("\t", 1)
    assert value == "poison"
    assert dict(each.split(":", 1) for each in headers.split(",")) == {
        "__dlq.errors.topic": "jobs",
        "__dlq.errors.partition": "0",
        "__dlq.errors.offset": "0",
        "__dlq.errors.group": group,
        "__dlq.errors.delivery.count": "1",
        "__dlq.errors.message": "Offset rejected by client.",
    }
    assert '"deliveryState":3' in _dumped(unstable_node, "__share_group_state", "--share-group-state-decoder")


def test_a_prepared_transaction_is_shown_and_terminated_by_kafkas_tool(unstable_node: Node) -> None:
    with Blocking() as blocking:
        settings = {
            "bootstrap.servers": unstable_node.bootstrap,
            "transactional.id": "prepared",
            "transaction.two.phase.commit.enable": "true",
        }
        for keeps_prepared in (False, True):
            producer = blocking.make(lambda environment: Producer(settings, environment=environment))
            blocking.run(producer.init_transactions(keeps_prepared=keeps_prepared))
            if not keeps_prepared:
                producer.begin_transaction()
                blocking.run(producer.enqueue("payments", b"one"))
                blocking.run(producer.prepare_transaction())
    described = _run(unstable_node, "kafka-transactions", "describe", "--transactional-id", "prepared")
    assert "Ongoing" in described
    assert "2147483647" in described
    assert '"nextProducerEpoch"' in _dumped(unstable_node, "__transaction_state", "--transaction-log-decoder")
    _run(unstable_node, "kafka-transactions", "forceTerminateTransaction", "--transactionalId", "prepared")
    until(
        lambda: "Ongoing" not in _run(unstable_node, "kafka-transactions", "list"),
        "the transaction is aborted",
    )
