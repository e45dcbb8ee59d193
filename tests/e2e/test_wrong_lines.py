"""Command lines with a mistake that a broker answers: one line each, which says what to do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from millbeck.cli.main import cli
from millbeck.testing import Broker, broker

WRONG = {
    "topic create orders": "already exists. (TOPIC_ALREADY_EXISTS): change it with millbeck topic alter",
    "topic create new --replication-factor 3": "start more brokers, or give a lower --replication-factor",
    "topic create new --config retetion.ms=1": "did you mean retention.ms instead of retetion.ms?",
    "topic create new --config retention.ms=soon": "retention.ms: expected a whole number",
    "topic describe ordres": "there is no topic ordres, did you mean orders?",
    "topic alter orders --partitions 1": "partitions can only be added; for fewer create a new topic",
    "topic offsets ordres": "no partition matches ordres, did you mean orders?",
    "topic delete-records orders:9:0": "millbeck topic describe shows the topics and their partitions",
    "produce ordres": "there is no topic ordres, did you mean orders?: millbeck topic create ordres",
    "consume ordres --exit": "there is no topic ordres, did you mean orders?",
    "consume orders -p 7 --exit": "topic orders has no partition 7, only 0 to 1",
    "perf consume ordres": "there is no topic ordres, did you mean orders?",
    "config alter --topic ordres --add-config retention.ms=1": "there is no topic ordres, did you mean orders?",
    "config alter --topic orders --add-config retetion.ms=1": "did you mean retention.ms instead of retetion.ms?",
    "config alter --broker 1 --add-config num.network.threds=3": "did you mean num.network.threads instead of",
    "config describe --broker 9": "broker 9 does not exist; the brokers are 1",
    "log-dirs --broker-list 9": "broker 9 does not exist; the brokers are 1",
    "group describe biling": "there is no group biling, did you mean billing?",
    "group delete biling": "there is no group biling, did you mean billing?",
    "group reset biling --topic orders --to-earliest": "there is no group biling, did you mean billing?",
    "share describe nope": "millbeck group list and share list show the groups",
    "txn describe nope": "millbeck txn list shows the transactional ids",
    "cluster unregister --id 9": "list-endpoints --include-fenced-brokers shows the ids",
    "feature upgrade --feature share.verson=1": "millbeck feature describe shows the supported levels",
    "quorum remove-controller --controller-id 9": "controller 9 is not a voter; the voters are 1",
    "user describe nobody": "millbeck user list shows the users",
    "config alter --topic kept --add-config retention.ms=1": (
        "TOPIC_AUTHORIZATION_FAILED): millbeck acl explain says which ACL is missing"
    ),
    "group describe secret": "GROUP_AUTHORIZATION_FAILED): millbeck acl explain says which ACL is missing",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow_everyone_if_no_acl_found": True,
        "auto_create_topics_enable": False,
    }
    with broker(data=tmp_path_factory.mktemp("node") / "logs", **settings) as running:
        for line in (
            "topic create orders --partitions 2",
            "topic create kept",
            "group reset billing --topic orders --to-earliest --create --execute",
            # Whoever has an ACL on a resource is asked for: everybody else is refused from then on.
            "acl add --allow-principal User:* --operation describe --topic kept",
            "acl add --allow-principal User:alice --operation describe --group secret",
        ):
            done = run(running, line)
            assert done.exit_code == 0, done.output
        yield running


def run(node: Broker, line: str) -> Result:
    environment = {"MILLBECK_BOOTSTRAP": node.bootstrap, "MILLBECK_PROFILE": None}
    return CliRunner().invoke(cli, line.split(), input="", env=environment, prog_name="millbeck")


@pytest.mark.parametrize(("line", "remedy"), WRONG.items())
def test_a_mistake_is_one_line_with_the_remedy(node: Broker, line: str, remedy: str) -> None:
    done = run(node, line)
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    assert done.stderr.startswith("millbeck: ")
    assert done.stderr.count("\n") == 1
    assert remedy in done.stderr


def test_a_setting_that_only_looks_mistyped_can_be_forced(node: Broker) -> None:
    line = "config alter --broker 1 --add-config num.network.threds=3"
    assert run(node, f"{line} --force").exit_code == 0
