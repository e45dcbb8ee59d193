"""Clients without permission cannot tell which names exist, and are told of no more than they may see.

The requests are those of the comparison with Kafka (`tests.interop.authorizer`).
"""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import OperationNotAttempted, TopicAuthorizationFailed, UnknownTopicOrPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.security.authorizer import Operation, Permission, ResourceType
from millbeck.wire.messages.classic_groups import DescribeGroupsRequest
from millbeck.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopic,
    MetadataRequest,
    MetadataRequestTopic,
)
from millbeck.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from millbeck.wire.messages.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tests.interop.authorizer.masking import masked
from tests.interop.authorizer.questions import MISSING_ID, QUESTIONS, Question, Subject, Target
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, find_coordinator
from tests.unit.server.harness.secured import acl, allow, connect_as, create_acls, run_secured

TRANSACTIONS = {"transaction_state_log_replication_factor": "1", "transaction_state_log_min_isr": "1"}


def _names_resources(question: Question) -> bool:
    # Ids of topics are no secret.
    return Target.MISSING in question.targets and "by id" not in question.name


def test_existing_and_missing_names_are_refused_alike() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, "user-existing")
        await find_coordinator(client, "user-existing")
        await find_coordinator(client, "user-existing", 1)
        asked = 0
        for question in filter(_names_resources, QUESTIONS):
            for version in question.versions:
                alice = await connect_as(harness, environment)
                answers = []
                for name, of_topic in (("user-existing", topic_id), ("user-missing", MISSING_ID)):
                    subject = Subject(topic=name, topic_id=of_topic, group=name, transactional_id=name)
                    answer = await alice.ask(question.request(subject, version), version)
                    answers.append(repr(masked(answer, name)).replace(name, "it"))
                assert answers[0] == answers[1], f"{question.name} version {version}"
                asked += 1
        assert asked > 60

    run_secured(scenario, **TRANSACTIONS)


def test_deleting_a_missing_topic_tells_so_to_those_who_may_describe_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        alice = await connect_as(harness, environment)

        async def codes() -> list[int]:
            wanted = [DeleteTopicState(name=name) for name in ("t", "gone")]
            answer = await alice.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=5000), 6)
            return [{each.name: each.error_code for each in answer.responses}[name] for name in ("t", "gone")]

        assert await codes() == [TopicAuthorizationFailed.code] * 2
        await create_acls(client, acl(Operation.DESCRIBE), acl(Operation.DESCRIBE, name="gone"))
        assert await codes() == [TopicAuthorizationFailed.code, UnknownTopicOrPartition.code]

    run_secured(scenario)


@pytest.mark.parametrize("api", ["Metadata", "DescribeTopicPartitions"])
def test_a_refused_topic_is_not_said_to_be_internal_and_a_missing_one_has_operations(api: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client)
        alice = await connect_as(harness, environment)

        async def ask(name: str) -> Any:
            if api == "Metadata":
                request = MetadataRequest(
                    topics=[MetadataRequestTopic(name=name)],
                    allow_auto_topic_creation=False,
                    include_topic_authorized_operations=True,
                )
                return (await alice.ask(request, 12)).topics[0]
            wanted = DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsTopic(name)])
            return (await alice.ask(wanted, 0)).topics[0]

        refused = await ask(CONSUMER_OFFSETS_TOPIC)
        assert (refused.error_code, refused.is_internal) == (TopicAuthorizationFailed.code, False)
        await create_acls(client, acl(Operation.READ, name="gone"), acl(Operation.READ, name=CONSUMER_OFFSETS_TOPIC))
        shown = await ask(CONSUMER_OFFSETS_TOPIC)
        assert (shown.error_code, shown.is_internal) == (0, True)
        missing = await ask("gone")
        assert missing.error_code == UnknownTopicOrPartition.code
        assert missing.topic_authorized_operations == 1 << Operation.READ | 1 << Operation.DESCRIBE

    run_secured(scenario)


def test_transactions_may_not_write_to_internal_topics_whatever_is_allowed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await find_coordinator(client)
        await find_coordinator(client, "x", 1)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, [0]) for name in ("t", CONSUMER_OFFSETS_TOPIC)],
        )
        answer = await client.ask(request, 3)
        codes = [each.results_by_partition[0].partition_error_code for each in answer.results_by_topic_v3_and_below]
        assert codes == [OperationNotAttempted.code, TopicAuthorizationFailed.code]

    run_secured(scenario, **TRANSACTIONS)


@pytest.mark.parametrize(
    ("permission", "operations"),
    [
        (Permission.ALLOW, [Operation.READ, Operation.DESCRIBE]),
        (Permission.DENY, []),
    ],
)
def test_authorized_operations_are_those_that_the_acls_allow(
    permission: Permission, operations: list[Operation]
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await find_coordinator(client, "g")
        await allow(client, Operation.DESCRIBE, ResourceType.CLUSTER)
        await allow(client, Operation.DESCRIBE, ResourceType.GROUP, "g")
        await create_acls(client, acl(Operation.READ, ResourceType.GROUP, "g", permission=permission))
        alice = await connect_as(harness, environment)
        wanted = DescribeGroupsRequest(groups=["g"], include_authorized_operations=True)
        (group,) = (await alice.ask(wanted, 5)).groups
        assert group.authorized_operations == sum(1 << each for each in {*operations, Operation.DESCRIBE})

    run_secured(scenario)
