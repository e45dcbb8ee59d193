"""``millbeck acl explain`` agrees with the broker, ours or Kafka, and a second ``acl apply`` finds nothing to do."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from bench.systems import SYSTEMS, Node
from bench.systems.node import free_ports
from millbeck.cli.acls.explanations import explain, make_authorizer
from millbeck.cli.acls.files import AclAssertion, exported
from millbeck.cli.main import cli
from millbeck.client.admin import Admin
from millbeck.security.acls import AccessControlEntry, AclFilter
from millbeck.security.authorizer import SUPPORTED_OPERATIONS, Operation, PatternType, Permission, ResourceType
from tests.interop.cluster import until

USERS: Final = [f"user{number}" for number in range(20)]
TOPICS: Final = [f"{letter}-{number}" for letter in "abcd" for number in range(30)]
ACL_COUNT: Final = 700
QUESTIONS_MIN: Final = 10_000
SUPER_USER: Final = "User:ANONYMOUS"
ASKED: Final = SUPPORTED_OPERATIONS[ResourceType.TOPIC]


def random_acls(seed: int) -> list[AccessControlEntry]:
    rng = random.Random(seed)
    entries: dict[AccessControlEntry, None] = {}
    while len(entries) < ACL_COUNT:
        kind = rng.choices(("literal", "prefix", "wildcard"), (80, 17, 3))[0]
        is_denied = rng.random() < 0.25
        entry = AccessControlEntry(
            resource_type=ResourceType.TOPIC,
            resource_name={"literal": rng.choice(TOPICS), "prefix": rng.choice(TOPICS)[: rng.randrange(1, 4)]}.get(
                kind, "*"
            ),
            pattern_type=PatternType.PREFIXED if kind == "prefix" else PatternType.LITERAL,
            principal="User:*" if rng.random() < 0.03 else f"User:{rng.choice(USERS)}",
            host=rng.choice(("*", "*", "127.0.0.1", "10.0.0.1")),
            operation=rng.choice((*ASKED, Operation.READ, Operation.WRITE, Operation.ALL)),
            permission_type=Permission.DENY if is_denied else Permission.ALLOW,
        )
        entries[entry] = None
    return list(entries)


@pytest.fixture(scope="module")
def secured(system: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, int]]:
    """The node, and the port where users log in."""
    (port,) = free_ports(1)
    users = " ".join(f'user_{name}="{name}-secret"' for name in USERS)
    node = SYSTEMS[system](tmp_path_factory.mktemp("explain"))
    own = node.properties()
    node.overrides = {
        "listeners": f"{own['listeners']},USERS://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port},USERS://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": SUPER_USER,
    }
    with node:
        yield node, port


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, list(arguments), env={"XDG_CONFIG_HOME": "none"})
    assert done.exit_code == 0, done.output
    return done.stdout


def described(bootstrap: str) -> list[AccessControlEntry]:
    async def ask() -> list[AccessControlEntry]:
        async with Admin({"bootstrap.servers": bootstrap}) as admin:
            return list(await admin.describe_acls(AclFilter()))

    return asyncio.run(ask())


def answers_of(port: int, user: str) -> Iterator[tuple[str, Operation, bool]]:
    """What the broker says this user may do with each topic."""
    client = AdminClient(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
        }
    )
    asked: dict[str, Any] = client.describe_topics(TopicCollection(TOPICS), include_authorized_operations=True)
    for topic, future in asked.items():
        try:
            allowed = {each.name for each in future.result(30).authorized_operations}
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
            yield topic, Operation.DESCRIBE, False
            continue
        for operation in ASKED:
            yield topic, operation, operation.name in allowed


def test_explain_agrees_with_the_broker_and_apply_is_idempotent(secured: tuple[Node, int], tmp_path: Path) -> None:
    node, port = secured
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    for created in admin.create_topics([NewTopic(name, 1, 1) for name in TOPICS]).values():
        created.result(60)
    path = tmp_path / "acls.json"
    path.write_text(json.dumps(exported(random_acls(19))))
    assert run("acl", "apply", str(path), "--prune", "-b", node.bootstrap).count("\n") == ACL_COUNT
    until(lambda: len(described(node.bootstrap)) == ACL_COUNT, "the broker's knowledge of the ACLs")
    assert run("acl", "apply", str(path), "--prune", "-b", node.bootstrap) == "no changes\n"
    entries = described(node.bootstrap)
    authorizer = make_authorizer(entries, [SUPER_USER], allow_everyone=False)
    count = allowed_count = 0
    for user in USERS:
        for topic, operation, is_allowed in answers_of(port, user):
            question = AclAssertion(
                principal=f"User:{user}",
                host="127.0.0.1",
                operation=operation,
                resource_type=ResourceType.TOPIC,
                resource_name=topic,
            )
            assert explain(authorizer, entries, question).decision.is_allowed == is_allowed, str(question)
            count += 1
            allowed_count += is_allowed
    assert count >= QUESTIONS_MIN
    assert 0.1 < allowed_count / count < 0.9
    print(f"{count} questions, {allowed_count} allowed")
