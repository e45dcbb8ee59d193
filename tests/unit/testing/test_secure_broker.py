"""A node with locks for tests: users, what they may do, and what a client is told that may not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from millbeck.testing import BrokerFailed, SecureBroker, broker


@pytest.fixture(scope="module")
def node() -> Iterator[SecureBroker]:
    with broker(secure=True, num_partitions=1) as running:
        yield running


def produced(user: dict[str, Any], topic: str) -> KafkaError | None:
    told: list[KafkaError | None] = []
    producer = Producer({**user, "message.timeout.ms": 20_000})
    producer.produce(topic, b"x", on_delivery=lambda error, _: told.append(error))
    assert producer.flush(25) == 0
    return told[0]


def test_users_may_do_what_they_were_allowed(node: SecureBroker) -> None:
    bob = node.create_user("bob")
    assert produced(bob.librdkafka, "orders-1") is not None
    node.allow("bob", "WRITE", "CREATE", topic="orders-*")
    node.allow("bob", "IDEMPOTENT_WRITE", cluster="any")
    node.deny("bob", "WRITE", topic="orders-secret")
    assert produced(bob.librdkafka, "orders-1") is None
    denied = produced(bob.librdkafka, "orders-secret")
    assert denied is not None
    assert denied.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    for wrong in ({"thing": "x"}, {"topic": "x"}):
        with pytest.raises(ValueError, match=r"is not an operation|a resource must be"):
            node.allow("bob", "PAINT", **wrong)


def test_applications_and_the_admin_are_there_from_the_start(node: SecureBroker) -> None:
    assert produced(node.app.librdkafka, "anything") is None
    admin = AdminClient(node.admin.librdkafka)
    found: Any = admin.describe_user_scram_credentials()
    assert {"admin", "app"} <= set(found.result(20))


def test_a_user_that_was_deleted_cannot_log_in(node: SecureBroker) -> None:
    carol = node.create_user("carol", may_use_everything=True)
    assert AdminClient(carol.librdkafka).list_topics(timeout=20).brokers
    node.delete_user("carol")
    with pytest.raises(KafkaException):
        AdminClient(carol.librdkafka).list_topics(timeout=2)


def test_users_are_created_inside_an_event_loop_too(node: SecureBroker) -> None:
    async def create() -> str:
        return node.create_user("dave").user

    assert asyncio.run(create()) == "dave"


def test_no_secret_is_an_argument_of_the_process_or_in_its_output(node: SecureBroker) -> None:
    arguments = Path(f"/proc/{node.process_id}/cmdline")
    shown = (arguments.read_text() if arguments.exists() else "") + node.output()
    for user in (node.admin, node.app):
        assert user.password not in shown


def test_everything_stays_over_a_restart(tmp_path: Path) -> None:
    with broker(secure=True, data=tmp_path) as first:
        eve = first.create_user("eve", may_use_everything=True)
        assert produced(eve.librdkafka, "kept") is None
        first.restart()
        assert produced(eve.librdkafka, "kept") is None
    assert (tmp_path / "node-1" / "kept-0").is_dir()


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.host.certificate_authority.is_installed", lambda: False)
    with pytest.raises(BrokerFailed, match=r"pip install 'millbeck\[security\]'"), broker(secure=True):
        pass
