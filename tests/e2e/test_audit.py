"""The audit of a running node: its file and topic, what is in them and what never is, and the ACLs that it suggests."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from millbeck.cli.main import cli
from millbeck.testing import SecureBroker, broker

DRY_RUN = {"authorizer.class.name": "StandardAuthorizer", "millbeck.authorizer.dry.run": "true"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), env={"XDG_CONFIG_HOME": "none"})


def events_of(path: Path, **wanted: str) -> list[dict[str, Any]]:
    # The file is made with the first event, which is written off the loop.
    text = path.read_text() if path.exists() else ""
    found = [json.loads(line) for line in text.splitlines()]
    return [each for each in found if all(each.get(name) == text for name, text in wanted.items())]


def until_there(path: Path, **wanted: str) -> dict[str, Any]:
    deadline_s = time.monotonic() + 20
    while not (found := events_of(path, **wanted)):
        assert time.monotonic() < deadline_s, path.read_text() if path.exists() else "no file"
        time.sleep(0.05)
    return found[-1]


def workload(bootstrap: str) -> None:
    """What an application does: topics, a transaction, a group."""
    servers: dict[str, Any] = {"bootstrap.servers": bootstrap}
    admin = AdminClient(servers)
    for name, created in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("payments", 1, 1)]).items():
        try:
            created.result(20)
        except KafkaException as error:
            assert "already exists" in str(error), name  # noqa: PT017
    producer = Producer({**servers, "transactional.id": "app-1"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", b"apples")
    producer.commit_transaction(20)
    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    deadline_s = time.monotonic() + 30
    while (message := consumer.poll(0.2)) is None or message.error() is not None:
        assert time.monotonic() < deadline_s
    consumer.commit(message=message, asynchronous=False)
    consumer.close()


def test_under_the_suggested_acls_the_same_work_goes_on(tmp_path: Path) -> None:
    audit, acls = tmp_path / "audit.log", tmp_path / "acls.json"
    with broker({**DRY_RUN, "millbeck.audit.file": str(audit)}, data=tmp_path / "data") as node:
        workload(node.bootstrap)
        until_there(audit, event="denied", operation="READ", resource="GROUP:billing")
        acls.write_text(run("acl", "suggest", "--from-audit", str(audit), "-o", "json").stdout)
        assert run("acl", "apply", str(acls), "-b", node.bootstrap).exit_code == 0
        assert run("acl", "apply", str(acls), "-b", node.bootstrap).stdout == "no changes\n"
        # What allowed everything is gone with the restart.
        node.stop()
        node.settings |= {"millbeck.authorizer.dry.run": "false", "millbeck.audit.file": str(tmp_path / "later.log")}
        node.start()
        workload(node.bootstrap)
        refused = run("topic", "delete", "orders", "-b", node.bootstrap)
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.output
        denial = until_there(tmp_path / "later.log", event="denied")
        assert denial["resource"] == "TOPIC:orders"
        assert {each["api"] for each in events_of(tmp_path / "later.log", event="denied")} == {"DeleteTopics"}


def test_logins_denials_and_changes_are_in_the_file_and_the_topic_and_no_secret_is(tmp_path: Path) -> None:
    settings = {"millbeck.audit.topic": "true", "millbeck.audit.repeat.ms": "1000"}
    with broker(settings, data=tmp_path, secure=True) as node:
        assert isinstance(node, SecureBroker)
        audit = tmp_path / "security" / "audit-1.log"
        bob = node.create_user("bob")
        wrong = AdminClient({**bob.librdkafka, "sasl.password": "guessed-by-bob"})
        wrong.poll(0.5)
        failed = until_there(audit, event="login-failed", user="bob")
        del wrong  # it would try again for ever
        assert (failed["mechanism"], failed["host"], failed["listener"]) == ("SCRAM-SHA-512", "127.0.0.1", "SASL_SSL")
        admin = AdminClient(bob.librdkafka)
        for _ in range(5):
            admin.create_topics([NewTopic("bobs", 1, 1)])["bobs"].exception(20)
        denied = until_there(audit, event="denied", principal="User:bob", resource="TOPIC:bobs")
        assert (denied["operation"], denied["api"], denied["rule"]) == ("CREATE", "CreateTopics", "DefaultDeny")
        until_there(audit, event="login", principal="User:bob")
        config = tmp_path / "admin.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in node.admin.librdkafka.items()))
        for value in ("1000000", "2000000"):
            setting = ("--add-config", f"message.max.bytes={value}")
            changed = run("config", "alter", "--broker-defaults", *setting, "--command-config", str(config))
            assert changed.exit_code == 0, changed.output
        last = until_there(audit, event="changed", name="broker:(all):message.max.bytes", after="2000000")
        assert (last["before"], last["principal"]) == ("1000000", "User:admin")
        deadline_s = time.monotonic() + 20
        while sum(each.get("repeated", 1) for each in events_of(audit, resource="TOPIC:bobs")) < 5:
            assert time.monotonic() < deadline_s, "the repeats are not written"
            time.sleep(0.1)
        found = run("audit", "search", "--event", "changed", "--command-config", str(config), "-o", "json")
        assert [json.loads(line) for line in found.stdout.splitlines()] == events_of(audit, event="changed")
        text = audit.read_text()
        for secret in (bob.password, node.admin.password, node.app.password, "guessed-by-bob"):
            assert secret not in text
        from urllib.request import urlopen

        with urlopen(node.metrics_url) as answer:
            metrics = answer.read().decode()
        assert 'millbeck_audit_events_total{event="denied"} 5' in metrics
        assert 'millbeck_audit_dropped_total{sink="topic"} 0' in metrics
