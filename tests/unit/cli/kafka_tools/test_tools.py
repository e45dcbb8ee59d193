"""The table of tools against the flags that the help of Apache Kafka 4.3's tools lists."""

from __future__ import annotations

import click
import pytest

from millbeck.cli.kafka_tools.tools import TOOLS
from millbeck.cli.main import cli

FLAGS = {
    "kafka-acls": """
        add allow-host allow-principal bootstrap-controller bootstrap-server cluster command-config consumer
        delegation-token deny-host deny-principal force group idempotent list operation principal producer
        remove resource-pattern-type topic transactional-id user-principal
    """,
    "kafka-broker-api-versions": """
        bootstrap-server command-config
    """,
    "kafka-cluster": """
        bootstrap-controller bootstrap-server command-config config id include-fenced-brokers
    """,
    "kafka-configs": """
        add-config add-config-file all alter bootstrap-controller bootstrap-server broker broker-defaults
        broker-logger client client-defaults client-metrics command-config delete-config describe
        entity-default entity-name entity-type group ip ip-defaults topic user user-defaults
    """,
    "kafka-console-consumer": """
        bootstrap-server command-config command-property consumer-property consumer.config
        enable-systest-events formatter formatter-config formatter-property from-beginning group include
        isolation-level key-deserializer max-messages offset partition property skip-message-on-error
        timeout-ms topic value-deserializer
    """,
    "kafka-console-producer": """
        batch-size bootstrap-server command-config command-property compression-codec line-reader
        max-block-ms max-memory-bytes max-partition-memory-bytes message-send-max-retries metadata-expiry-ms
        producer-property producer.config property reader-config reader-property request-required-acks
        request-timeout-ms retry-backoff-ms socket-buffer-size sync timeout topic
    """,
    "kafka-console-share-consumer": """
        bootstrap-server command-config command-property consumer-config consumer-property
        enable-systest-events formatter formatter-config formatter-property group key-deserializer
        max-messages property reject reject-message-on-error release timeout-ms topic value-deserializer
    """,
    "kafka-consumer-groups": """
        all-groups all-topics bootstrap-server by-duration command-config delete delete-offsets describe
        dry-run execute export from-file group list members offsets reset-offsets shift-by state timeout
        to-current to-datetime to-earliest to-latest to-offset topic type validate-regex verbose
    """,
    "kafka-consumer-perf-test": """
        bootstrap-server command-config command-property consumer.config date-format fetch-size from-latest
        group hide-header include messages num-records print-metrics reporting-interval show-detailed-stats
        socket-buffer-size timeout topic
    """,
    "kafka-delegation-tokens": """
        bootstrap-server command-config create describe expire expiry-time-period hmac max-life-time-period
        owner-principal renew renew-time-period renewer-principal
    """,
    "kafka-delete-records": """
        bootstrap-server command-config offset-json-file
    """,
    "kafka-dump-log": """
        cluster-metadata-decoder deep-iteration files index-sanity-check key-decoder-class max-bytes
        max-message-size offsets-decoder print-data-log remote-log-metadata-decoder
        share-group-state-decoder skip-record-metadata transaction-log-decoder value-decoder-class
        verify-index-only
    """,
    "kafka-features": """
        bootstrap-controller bootstrap-server command-config dry-run feature metadata release-version unsafe
    """,
    "kafka-get-offsets": """
        bootstrap-server command-config exclude-internal-topics partitions time topic topic-partitions
    """,
    "kafka-groups": """
        bootstrap-server command-config consumer group-type list protocol share streams
    """,
    "kafka-leader-election": """
        admin.config all-topic-partitions bootstrap-server command-config election-type partition
        path-to-json-file topic
    """,
    "kafka-log-dirs": """
        bootstrap-server broker-list command-config describe topic-list
    """,
    "kafka-metadata-quorum": """
        bootstrap-controller bootstrap-server command-config controller-directory-id controller-id dry-run
        human-readable replication status
    """,
    "kafka-producer-perf-test": """
        bootstrap-server command-config command-property num-records payload-delimiter payload-file
        payload-monotonic print-metrics producer-props producer.config record-size reporting-interval
        throughput topic transaction-duration-ms transactional-id warmup-records
    """,
    "kafka-reassign-partitions": """
        additional bootstrap-controller bootstrap-server broker-list cancel command-config
        disable-rack-aware disallow-replication-factor-change execute generate list preserve-throttles
        reassignment-json-file replica-alter-log-dirs-throttle throttle timeout topics-to-move-json-file
        verify
    """,
    "kafka-server-start": """
        override
    """,
    "kafka-share-groups": """
        all-groups all-topics bootstrap-server command-config delete delete-offsets describe dry-run execute
        group list members offsets reset-offsets state timeout to-datetime to-earliest to-latest topic
        verbose
    """,
    "kafka-storage": """
        add-scram cluster-id config feature ignore-formatted initial-controllers no-initial-controllers
        release-version standalone
    """,
    "kafka-streams-groups": """
        all-groups all-input-topics bootstrap-server by-duration command-config delete delete-all-internal-topics
        delete-internal-topic delete-offsets describe dry-run execute export from-file group input-topic list members
        offsets reset-offsets shift-by state timeout to-current to-datetime to-earliest to-latest to-offset verbose
    """,
    "kafka-topics": """
        alter at-min-isr-partitions bootstrap-server command-config config create delete delete-config
        describe exclude-internal if-exists if-not-exists list partition-size-limit-per-response partitions
        replica-assignment replication-factor topic topic-id topics-with-overrides unavailable-partitions
        under-min-isr-partitions under-replicated-partitions
    """,
    "kafka-transactions": """
        bootstrap-server broker-id command-config coordinator-epoch duration-filter max-transaction-timeout
        partition producer-epoch producer-id start-offset topic transactional-id transactional-id-pattern
        transactionalId
    """,
}


def command_of(words: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for word in words:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(cli), word)
        assert inner is not None, words
        found = inner
    return found


def accepted_by(command: click.Command) -> set[str]:
    names = {name for each in command.params for name in each.opts}
    if isinstance(command, click.Group):
        names |= set(getattr(command, "flags", {}))
        for inner in command.commands.values():
            names |= accepted_by(inner)
    return names


@pytest.mark.parametrize("name", TOOLS)
def test_every_flag_of_kafkas_tool_is_accepted_or_refused_with_a_reason(name: str) -> None:
    tool = TOOLS[name]
    known = {*tool.renamed, *tool.as_setting, *tool.without_effect, *tool.missing, *tool.verbs}
    for words in (tool.command, *tool.verbs.values()):
        known |= accepted_by(command_of(words))
    assert [flag for flag in FLAGS[name].split() if f"--{flag}" not in known] == []


@pytest.mark.parametrize("name", TOOLS)
def test_every_name_in_the_table_is_a_flag_or_a_verb_of_kafkas_tool(name: str) -> None:
    tool = TOOLS[name]
    flags = {f"--{flag}" for flag in FLAGS[name].split()}
    named = {
        *tool.renamed,
        *tool.as_setting,
        *tool.without_effect,
        *tool.missing,
        *tool.several,
        *tool.actions,
        *tool.needed_by,
        *tool.alone,
    }
    named |= {flag for needed in tool.needed_by.values() for flag in needed}
    assert {each for each in named if each.startswith("--")} <= flags
    assert {flag for either in tool.requires for flag in either if flag.startswith("--")} <= flags


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_is_translated_to_exists(name: str) -> None:
    tool = TOOLS[name]
    known = accepted_by(command_of(tool.command))
    assert {flag.partition("=")[0] for flag in tool.renamed.values()} <= known
    assert {word for word in tool.always if word.startswith("-")} <= known
    assert "--command-property" in known or not tool.as_setting
