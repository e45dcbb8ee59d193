"""Two of three nodes are dead: the third answers what it knows at once, and gives up on the rest in time.

The error codes are those of Apache Kafka 4.3.1; `tests.interop.test_without_controller` asks it the same.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation.cluster import PORT, SimCluster
from millbeck.simulation.workloads.without_controller import ResponseTimes, WithoutController

SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
    "controller.quorum.election.timeout.ms": "1000",
}
SLACK_S = 0.5
AT_ONCE = {
    "Metadata v6 known, missing": (0, 3, 0),
    "Metadata v12 missing": (3, 0),
    "Metadata v9 all": (0,),
    "DescribeTopicPartitions known, missing": (0, 3),
    "DescribeConfigs topic, broker": (0,),
    "DescribeCluster": (0,),
    "ListConfigResources": (0,),
    "DescribeAcls": (54,),
    "DescribeClientQuotas": (0,),
    "DescribeUserScramCredentials": (0,),
    "DescribeDelegationToken": (64,),
    "CreateDelegationToken, without a secret key": (64,),
    "RenewDelegationToken, without a secret key": (64,),
    "ExpireDelegationToken, without a secret key": (64,),
    "FindCoordinator v3 group": (0,),
    "FindCoordinator v6 group": (0,),
    "FindCoordinator v3 transaction": (0,),
    "FindCoordinator v6 transaction": (0,),
    "FindCoordinator v6 share, no topic": (0, 15),
    "InitProducerId, ids left": (0,),
    "DescribeTransactions": (0,),
    "ListTransactions": (0,),
    "ListGroups": (0,),
    "DescribeGroups": (0,),
    "ConsumerGroupDescribe": (69,),
    "ShareGroupDescribe": (69,),
    "DescribeShareGroupOffsets": (0,),
    "DeleteShareGroupOffsets, no group": (69,),
    "ShareAcknowledge, no session": (122,),
    "StreamsGroupDescribe": (69,),
    "StreamsGroupHeartbeat, no group": (69,),
    "OffsetFetch": (0,),
    "OffsetDelete, no group": (69,),
    "DeleteGroups, no group": (69,),
    "JoinGroup, without a member id": (79,),
    "SyncGroup, no member": (23,),
    "Heartbeat, no member": (25,),
    "LeaveGroup, no member": (0, 25),
    "ListOffsets": (0,),
    "OffsetForLeaderEpoch": (0,),
    "DescribeProducers": (0,),
    "DescribeLogDirs": (0,),
    "AlterReplicaLogDirs, no directory": (57,),
    "DeleteRecords": (0,),
    "ShareFetch": (0,),
    "InitProducerId, no ids left": (14,),
}
LATER = {
    "CreateTopics": (7, 0),
    "CreateTopics, validate only": (7, 0),
    "DeleteTopics": (7,),
    "CreatePartitions": (7,),
    "ElectLeaders": (7,),
    "AlterPartitionReassignments": (7,),
    "ListPartitionReassignments": (7,),
    "UpdateFeatures": (7,),
    "AddRaftVoter": (7,),
    "Produce, all": (7,),
    "IncrementalAlterConfigs": (7,),
    "AlterConfigs": (7,),
    "AlterClientQuotas": (7,),
    "AlterUserScramCredentials": (7,),
    "CreateAcls": (7,),
    "DeleteAcls": (7,),
    "DescribeQuorum": (7,),
    "UnregisterBroker": (7,),
    "RemoveRaftVoter": (7,),
    "OffsetCommit": (15,),
    "ConsumerGroupHeartbeat, joins": (15,),
    "ShareGroupHeartbeat, joins": (15,),
    "AlterShareGroupOffsets": (15,),
    "InitProducerId, transactional": (15,),
    "AddPartitionsToTxn": (0, 15),
    "AddOffsetsToTxn": (15,),
    "TxnOffsetCommit": (48,),
    "EndTxn": (15,),
}
KAFKAS = AT_ONCE | LATER
"""The codes in the answers in the order of their fields; a 0 beside another code is a field that says nothing."""


class _ThreeNodes:
    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self.addresses: Mapping[int, tuple[str, int]] = {each.number: (each.name, PORT) for each in cluster.brokers}

    def kill(self, node_id: int) -> None:
        self._cluster.machine(self._cluster.member(node_id)).crash()

    def start(self, node_id: int) -> None:
        self._cluster.start(self._cluster.member(node_id))


def findings_of(*, survivor_is_controller: bool) -> dict[str, ResponseTimes]:
    cluster = SimCluster(1, settings=SETTINGS)

    async def whole(environment: Environment) -> dict[str, ResponseTimes]:
        cluster.start_all()
        asking = WithoutController(environment, _ThreeNodes(cluster), survivor_is_controller=survivor_is_controller)
        findings = await asking.run()
        assert cluster.unexpected_errors() == {}
        return findings

    with cluster.world as world:
        return world.run(whole, limit_s=300)


@pytest.mark.parametrize("survivor_is_controller", [False, True], ids=["follower", "active-controller"])
def test_what_is_known_is_answered_at_once_and_the_rest_in_time(survivor_is_controller: bool) -> None:
    findings = findings_of(survivor_is_controller=survivor_is_controller)
    assert {name: each.codes for name, each in findings.items()} == KAFKAS
    for each in findings.values():
        assert each.seconds <= each.limit_s + SLACK_S, each
        assert each.behind_seconds <= each.seconds + SLACK_S, each
