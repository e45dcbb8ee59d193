"""Requests that a broker cannot serve while no controller can be elected: they need the controller, or replicas that
are down."""

from __future__ import annotations

from typing import Final

from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.workloads.outage_requests import KNOWN, MEMBER_ID, TOPIC_RESOURCE, RequestCase, Situation
from millbeck.wire.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from millbeck.wire.messages.authentication import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from millbeck.wire.messages.configs import IncrementalAlterableConfig as IncrementalConfig
from millbeck.wire.messages.configs import IncrementalAlterConfigsResource as IncrementalResource
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.nodes import FeatureUpdateKey, UnregisterBrokerRequest, UpdateFeaturesRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.quorum import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    RemoveRaftVoterRequest,
)
from millbeck.wire.messages.quotas import AlterClientQuotasEntry, AlterClientQuotasRequest, EntityData, OpData
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
    ListPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millbeck.wire.messages.share_fetch import ShareFetchPartition, ShareFetchRequest, ShareFetchTopic
from millbeck.wire.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    ShareGroupHeartbeatRequest,
)
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from millbeck.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

REQUEST_TIMEOUT_S: Final = 5.0
"""The timeout in requests that have a timeout field."""
NO_TIMEOUT_S: Final = 30.0
"""The maximum response time of requests without a timeout field."""
RESIGNED_S: Final = 5.0
"""The time after which a surviving active controller notices that it has lost the quorum; until then it may answer some
requests."""
TIMEOUT_MS: Final = int(REQUEST_TIMEOUT_S * 1000)
NOBODY: Final = 99
SCRAM_SHA_256: Final = 1


def remote_requests(known: Situation) -> list[RequestCase]:
    return [*_with_timeout(known), *_without_timeout(), *_of_groups(known), *_of_transactions(known)]


def _with_timeout(known: Situation) -> list[RequestCase]:
    created = [CreatableTopic("new", num_partitions=1, replication_factor=3)]
    moved = [ReassignableTopic(KNOWN, [ReassignablePartition(0, [1, 2])])]
    data = batch.build([Record(-1, known.now_ms, None, b"value")])
    produced = [TopicProduceData(name=KNOWN, partition_data=[PartitionProduceData(known.led_partition, data)])]
    cut = [DeleteRecordsTopic(KNOWN, [DeleteRecordsPartition(known.led_partition, 0)])]
    # Those that the active controller answers without the others wait until it has resigned.
    asked: dict[str, tuple[object, int, float]] = {
        "CreateTopics": (CreateTopicsRequest(created, TIMEOUT_MS), 7, 0),
        "CreateTopics, validate only": (CreateTopicsRequest(created, TIMEOUT_MS, validate_only=True), 7, 0),
        "DeleteTopics": (DeleteTopicsRequest(topics=[DeleteTopicState(KNOWN)], timeout_ms=TIMEOUT_MS), 6, 0),
        "CreatePartitions": (CreatePartitionsRequest([CreatePartitionsTopic(KNOWN, 9, None)], TIMEOUT_MS), 3, 0),
        "ElectLeaders": (ElectLeadersRequest(0, [ElectLeadersTopicPartitions(KNOWN, [0])], TIMEOUT_MS), 2, 0),
        "AlterPartitionReassignments": (AlterPartitionReassignmentsRequest(TIMEOUT_MS, topics=moved), 0, 0),
        "ListPartitionReassignments": (ListPartitionReassignmentsRequest(TIMEOUT_MS), 0, RESIGNED_S),
        "UpdateFeatures": (UpdateFeaturesRequest(TIMEOUT_MS, [FeatureUpdateKey("group.version", 1)]), 1, 0),
        "AddRaftVoter": (AddRaftVoterRequest(None, TIMEOUT_MS, NOBODY, bytes([1]) * 16), 0, RESIGNED_S),
        "Produce, all": (ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=produced), 9, 0),
        "DeleteRecords": (DeleteRecordsRequest(cut, TIMEOUT_MS), 2, 0),
    }
    return [
        RequestCase(name=name, request=request, version=version, limit_s=REQUEST_TIMEOUT_S, delay_s=delay_s)
        for name, (request, version, delay_s) in asked.items()
    ]


def _without_timeout() -> list[RequestCase]:
    altered = [IncrementalResource(TOPIC_RESOURCE, KNOWN, [IncrementalConfig("retention.ms", 0, "1000000")])]
    replaced = [AlterConfigsResource(TOPIC_RESOURCE, KNOWN, [AlterableConfig("retention.ms", "1000000")])]
    quorum = [DescribeQuorumRequestTopic("__cluster_metadata", [DescribeQuorumRequestPartition(0)])]
    acl = AclCreation(2, KNOWN, 3, "User:somebody", "*", 3, 3)
    quota = AlterClientQuotasEntry([EntityData("user", "somebody")], [OpData("producer_byte_rate", 1e6)])
    credential = ScramCredentialUpsertion("somebody", SCRAM_SHA_256, 4096, b"salt", bytes(32))
    asked: dict[str, tuple[object, int, float]] = {
        "IncrementalAlterConfigs": (IncrementalAlterConfigsRequest(altered), 1, 0),
        "AlterConfigs": (AlterConfigsRequest(replaced), 2, 0),
        "AlterClientQuotas": (AlterClientQuotasRequest([quota]), 1, 0),
        "AlterUserScramCredentials": (AlterUserScramCredentialsRequest(upsertions=[credential]), 0, 0),
        "CreateAcls": (CreateAclsRequest([acl]), 3, RESIGNED_S),
        "DeleteAcls": (DeleteAclsRequest([DeleteAclsFilter(2, KNOWN, 3, None, None, 1, 1)]), 3, RESIGNED_S),
        "DescribeQuorum": (DescribeQuorumRequest(quorum), 0, RESIGNED_S),
        "UnregisterBroker": (UnregisterBrokerRequest(NOBODY), 0, RESIGNED_S),
        "RemoveRaftVoter": (RemoveRaftVoterRequest(None, NOBODY, bytes([1]) * 16), 0, RESIGNED_S),
    }
    return [
        RequestCase(name=name, request=request, version=version, limit_s=NO_TIMEOUT_S, delay_s=delay_s)
        for name, (request, version, delay_s) in asked.items()
    ]


def _of_groups(known: Situation) -> list[RequestCase]:
    """Group requests, which need replicas: the dead nodes stay in the ISR while there is no controller."""
    committed = OffsetCommitRequestTopic(KNOWN, partitions=[OffsetCommitRequestPartition(0, 1)])
    joining = ConsumerGroupHeartbeatRequest(
        group_id=known.groups[1],
        member_id=MEMBER_ID,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[KNOWN],
        topic_partitions=[],
    )
    share_member_id = MEMBER_ID[::-1]
    fetching = ShareFetchRequest(
        group_id=known.groups[4],
        member_id=MEMBER_ID,
        max_wait_ms=500,
        max_bytes=1 << 20,
        max_records=100,
        batch_size=100,
        topics=[ShareFetchTopic(known.topic_id, [ShareFetchPartition(known.led_partition)])],
    )
    begun = AlterShareGroupOffsetsRequestTopic(KNOWN, [AlterShareGroupOffsetsRequestPartition(0, 1)])
    asked: dict[str, tuple[object, int]] = {
        "OffsetCommit": (OffsetCommitRequest(group_id=known.groups[0], topics=[committed]), 8),
        "ConsumerGroupHeartbeat, joins": (joining, 0),
        "ShareGroupHeartbeat, joins": (
            ShareGroupHeartbeatRequest(known.groups[2], share_member_id, 0, None, [KNOWN]),
            1,
        ),
        "ShareFetch": (fetching, 1),
        "AlterShareGroupOffsets": (AlterShareGroupOffsetsRequest(known.groups[3], [begun]), 0),
    }
    return [
        RequestCase(name=name, request=request, version=version, limit_s=NO_TIMEOUT_S)
        for name, (request, version) in asked.items()
    ]


def _of_transactions(known: Situation) -> list[RequestCase]:
    ids = list(known.producers)
    added, offsets, committed, ended = ((each, *known.producers[each]) for each in ids)
    asked: dict[str, tuple[object, int]] = {
        "InitProducerId, transactional": (InitProducerIdRequest(known.transactional_ids[-1], 60_000), 4),
        "AddPartitionsToTxn": (
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=added[0],
                v3_and_below_producer_id=added[1],
                v3_and_below_producer_epoch=added[2],
                v3_and_below_topics=[AddPartitionsToTxnTopic(KNOWN, [0])],
            ),
            3,
        ),
        "AddOffsetsToTxn": (AddOffsetsToTxnRequest(*offsets, known.groups[0]), 3),
        "TxnOffsetCommit": (
            TxnOffsetCommitRequest(
                transactional_id=committed[0],
                group_id=known.groups[0],
                producer_id=committed[1],
                producer_epoch=committed[2],
                topics=[TxnOffsetCommitRequestTopic(KNOWN, [TxnOffsetCommitRequestPartition(0, 1)])],
            ),
            3,
        ),
        "EndTxn": (EndTxnRequest(*ended, committed=True), 3),
    }
    return [
        RequestCase(name=name, request=request, version=version, limit_s=NO_TIMEOUT_S)
        for name, (request, version) in asked.items()
    ]
