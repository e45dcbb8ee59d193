"""The requests of the matrix: for each API what it asks for, on which resources, and what it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from millbeck.kernel.ids import ZERO_UUID
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.wire.messages import (
    acls,
    authentication,
    classic_groups,
    configs,
    consumer_groups,
    fetch,
    group_offsets,
    groups,
    log_offsets,
    metadata,
    nodes,
    produce,
    quorum,
    quotas,
    replicas,
    share_fetch,
    share_groups,
    streams_groups,
    topics,
    transactions,
)
from tests.unit.server.harness.broker_harness import one_batch

READ, WRITE, CREATE, DELETE = Operation.READ, Operation.WRITE, Operation.CREATE, Operation.DELETE
ALTER, DESCRIBE = Operation.ALTER, Operation.DESCRIBE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
T, G, C, X = ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER, ResourceType.TRANSACTIONAL_ID
Need = tuple[Operation, ResourceType]
UNRELATED = [(DESCRIBE, C)]
"""What a question asks for that needs nothing: it must make no difference."""
MISSING_ID = b"\x01" * 16
MEMBER_ID = "bWVtYmVyLW9mLW1hdHJpeA"
PRODUCER_ID = 4_000_000
NODE_ID = 1
TIMEOUT_MS = 10_000


class Target(StrEnum):
    """Which resources a request names."""

    EXISTING = "existing"
    MISSING = "missing"
    INTERNAL = "internal"
    """An internal topic; the other resources exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The resources that one request names."""

    topic: str
    topic_id: bytes
    group: str
    transactional_id: str


class GroupKind(StrEnum):
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    name: str
    versions: tuple[int, ...]
    needs: tuple[Need, ...]
    request: Callable[[Subject, int], Any]
    targets: tuple[Target, ...]
    groups: GroupKind

    @property
    def asks_about(self) -> frozenset[ResourceType]:
        return frozenset(resource_type for _, resource_type in self.needs)


E_M_I = (Target.EXISTING, Target.MISSING, Target.INTERNAL)
E_M = (Target.EXISTING, Target.MISSING)
ONE = (Target.EXISTING,)


def question(
    name: str,
    versions: Sequence[int],
    needs: Sequence[Need],
    request: Callable[[Subject, int], Any],
    targets: tuple[Target, ...] = E_M,
    groups: GroupKind = GroupKind.CLASSIC,
) -> Question:
    return Question(
        name=name,
        versions=tuple(versions),
        needs=tuple(needs),
        request=request,
        targets=targets,
        groups=groups,
    )


def _named(subject: Subject, version: int, ids_from: int) -> tuple[str, bytes]:
    """Name and id of the topic as a version wants them."""
    return ("", subject.topic_id) if version >= ids_from else (subject.topic, ZERO_UUID)


def _produce(subject: Subject, version: int) -> produce.ProduceRequest:
    name, topic_id = _named(subject, version, 13)
    data = produce.PartitionProduceData(0, one_batch(b"value"))
    return produce.ProduceRequest(
        acks=1, timeout_ms=TIMEOUT_MS, topic_data=[produce.TopicProduceData(name, topic_id, [data])]
    )


def _produce_in_transaction(subject: Subject, version: int) -> produce.ProduceRequest:
    batch = one_batch(b"value", producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = _produce(subject, version)
    request.transactional_id = subject.transactional_id
    request.acks = -1
    request.topic_data[0].partition_data[0].records = batch
    return request


def _fetch(subject: Subject, version: int) -> fetch.FetchRequest:
    name, topic_id = _named(subject, version, 13)
    wanted = fetch.FetchPartition(0, fetch_offset=0, partition_max_bytes=1000)
    return fetch.FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=[fetch.FetchTopic(name, topic_id, [wanted])]
    )


def _list_offsets(subject: Subject, version: int) -> log_offsets.ListOffsetsRequest:
    wanted = log_offsets.ListOffsetsPartition(0, timestamp=-1)
    return log_offsets.ListOffsetsRequest(replica_id=-1, topics=[log_offsets.ListOffsetsTopic(subject.topic, [wanted])])


def _metadata(subject: Subject, version: int) -> metadata.MetadataRequest:
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=subject.topic)], allow_auto_topic_creation=version < 4
    )
    if version >= 8:
        request.include_topic_authorized_operations = True
        request.include_cluster_authorized_operations = version <= 10
    return request


def _metadata_by_id(subject: Subject, version: int) -> metadata.MetadataRequest:
    wanted = metadata.MetadataRequestTopic(topic_id=subject.topic_id, name=None)
    return metadata.MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)


def _metadata_of_all(subject: Subject, version: int) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)


def _metadata_that_creates(subject: Subject, version: int) -> metadata.MetadataRequest:
    return metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=subject.topic)], allow_auto_topic_creation=True
    )


def _offset_commit(subject: Subject, version: int) -> group_offsets.OffsetCommitRequest:
    name, topic_id = _named(subject, version, 10)
    committed = group_offsets.OffsetCommitRequestPartition(0, committed_offset=1)
    return group_offsets.OffsetCommitRequest(
        group_id=subject.group,
        generation_id_or_member_epoch=-1,
        topics=[group_offsets.OffsetCommitRequestTopic(name, topic_id, [committed])],
    )


def _offset_fetch(subject: Subject, version: int, *, of_all: bool = False) -> group_offsets.OffsetFetchRequest:
    if version < 8:
        topics = None if of_all else [group_offsets.OffsetFetchRequestTopic(subject.topic, [0])]
        return group_offsets.OffsetFetchRequest(group_id=subject.group, topics=topics)
    name, topic_id = _named(subject, version, 10)
    wanted = None if of_all else [group_offsets.OffsetFetchRequestTopics(name, topic_id, [0])]
    return group_offsets.OffsetFetchRequest(
        groups=[group_offsets.OffsetFetchRequestGroup(subject.group, topics=wanted)]
    )


def _find(key_type: int, key: Callable[[Subject], str]) -> Callable[[Subject, int], groups.FindCoordinatorRequest]:
    def request(subject: Subject, version: int) -> groups.FindCoordinatorRequest:
        if version >= 4:
            return groups.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key(subject)])
        return groups.FindCoordinatorRequest(key=key(subject), key_type=key_type)

    return request


def _join(subject: Subject, version: int) -> classic_groups.JoinGroupRequest:
    return classic_groups.JoinGroupRequest(
        group_id=subject.group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[classic_groups.JoinGroupRequestProtocol("range", b"")],
        # Before version 4 a new member is let in at once, and joining takes as long as the others do.
        member_id="" if version >= 4 else "unknown-member",
    )


def _sync(subject: Subject, version: int) -> classic_groups.SyncGroupRequest:
    request = classic_groups.SyncGroupRequest(group_id=subject.group, generation_id=1, member_id="unknown-member")
    if version >= 5:
        request.protocol_type, request.protocol_name = "consumer", "range"
    return request


def _leave(subject: Subject, version: int) -> classic_groups.LeaveGroupRequest:
    if version < 3:
        return classic_groups.LeaveGroupRequest(group_id=subject.group, member_id="unknown-member")
    return classic_groups.LeaveGroupRequest(
        group_id=subject.group, members=[classic_groups.MemberIdentity("unknown-member")]
    )


def _describe_groups(subject: Subject, version: int) -> classic_groups.DescribeGroupsRequest:
    return classic_groups.DescribeGroupsRequest(groups=[subject.group], include_authorized_operations=version >= 3)


def _create_topics(subject: Subject, version: int) -> topics.CreateTopicsRequest:
    wanted = topics.CreatableTopic(subject.topic, num_partitions=1, replication_factor=1)
    return topics.CreateTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)


def _delete_topics(subject: Subject, version: int) -> topics.DeleteTopicsRequest:
    if version < 6:
        return topics.DeleteTopicsRequest(topic_names=[subject.topic], timeout_ms=TIMEOUT_MS)
    return topics.DeleteTopicsRequest(topics=[topics.DeleteTopicState(name=subject.topic)], timeout_ms=TIMEOUT_MS)


def _delete_topics_by_id(subject: Subject, version: int) -> topics.DeleteTopicsRequest:
    wanted = topics.DeleteTopicState(name=None, topic_id=subject.topic_id)
    return topics.DeleteTopicsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)


def _delete_records(subject: Subject, version: int) -> topics.DeleteRecordsRequest:
    wanted = topics.DeleteRecordsTopic(subject.topic, [topics.DeleteRecordsPartition(0, 0)])
    return topics.DeleteRecordsRequest(topics=[wanted], timeout_ms=TIMEOUT_MS)


def _create_partitions(subject: Subject, version: int) -> topics.CreatePartitionsRequest:
    return topics.CreatePartitionsRequest(
        topics=[topics.CreatePartitionsTopic(subject.topic, 2)], timeout_ms=TIMEOUT_MS, validate_only=True
    )


def _init_producer_id(subject: Subject, version: int) -> transactions.InitProducerIdRequest:
    return transactions.InitProducerIdRequest(
        transactional_id=subject.transactional_id, transaction_timeout_ms=TIMEOUT_MS
    )


def _init_idempotent(subject: Subject, version: int) -> transactions.InitProducerIdRequest:
    return transactions.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=TIMEOUT_MS)


def _epochs(subject: Subject, version: int) -> log_offsets.OffsetForLeaderEpochRequest:
    wanted = log_offsets.OffsetForLeaderPartition(0, leader_epoch=0)
    request = log_offsets.OffsetForLeaderEpochRequest(
        topics=[log_offsets.OffsetForLeaderTopic(subject.topic, [wanted])]
    )
    if version >= 3:
        request.replica_id = -1
    return request


def _add_partitions(subject: Subject, version: int) -> transactions.AddPartitionsToTxnRequest:
    return transactions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=subject.transactional_id,
        v3_and_below_producer_id=PRODUCER_ID,
        v3_and_below_topics=[transactions.AddPartitionsToTxnTopic(subject.topic, [0])],
    )


def _add_offsets(subject: Subject, version: int) -> transactions.AddOffsetsToTxnRequest:
    return transactions.AddOffsetsToTxnRequest(subject.transactional_id, PRODUCER_ID, 0, subject.group)


def _end_txn(subject: Subject, version: int) -> transactions.EndTxnRequest:
    return transactions.EndTxnRequest(subject.transactional_id, PRODUCER_ID, 0, True)


def _txn_offset_commit(subject: Subject, version: int) -> transactions.TxnOffsetCommitRequest:
    committed = transactions.TxnOffsetCommitRequestPartition(0, committed_offset=1)
    return transactions.TxnOffsetCommitRequest(
        transactional_id=subject.transactional_id,
        group_id=subject.group,
        producer_id=PRODUCER_ID,
        topics=[transactions.TxnOffsetCommitRequestTopic(subject.topic, [committed])],
    )


def _markers(subject: Subject, version: int) -> transactions.WriteTxnMarkersRequest:
    topic = transactions.WritableTxnMarkerTopic(subject.topic, [0])
    return transactions.WriteTxnMarkersRequest(markers=[transactions.WritableTxnMarker(PRODUCER_ID, 0, True, [topic])])


def _create_token(subject: Subject, version: int) -> authentication.CreateDelegationTokenRequest:
    return authentication.CreateDelegationTokenRequest(
        renewers=[authentication.CreatableRenewers("User", "somebody")], max_lifetime_ms=60_000
    )


def _create_token_for_another(subject: Subject, version: int) -> authentication.CreateDelegationTokenRequest:
    return authentication.CreateDelegationTokenRequest(
        owner_principal_type="User", owner_principal_name="somebody", max_lifetime_ms=-1
    )


def _create_token_for_a_group(subject: Subject, version: int) -> authentication.CreateDelegationTokenRequest:
    return authentication.CreateDelegationTokenRequest(
        renewers=[authentication.CreatableRenewers("Group", "somebody")], max_lifetime_ms=-1
    )


def _describe_acls(subject: Subject, version: int) -> acls.DescribeAclsRequest:
    return acls.DescribeAclsRequest(T, "nothing.has.this.name", 3, None, None, 1, 1)


def _create_acls(subject: Subject, version: int) -> acls.CreateAclsRequest:
    return acls.CreateAclsRequest(
        creations=[acls.AclCreation(T, f"{subject.topic}.acl", 3, "User:nobody", "*", READ, 3)]
    )


def _delete_acls(subject: Subject, version: int) -> acls.DeleteAclsRequest:
    return acls.DeleteAclsRequest(filters=[acls.DeleteAclsFilter(T, f"{subject.topic}.none", 3, None, None, 1, 1)])


def _describe_configs(kind: int, name: Callable[[Subject], str]) -> Callable[[Subject, int], Any]:
    def request(subject: Subject, version: int) -> configs.DescribeConfigsRequest:
        return configs.DescribeConfigsRequest(resources=[configs.DescribeConfigsResource(kind, name(subject), None)])

    return request


def _alter_configs(kind: int, name: Callable[[Subject], str], key: str, value: str) -> Callable[[Subject, int], Any]:
    def request(subject: Subject, version: int) -> configs.AlterConfigsRequest:
        changed = configs.AlterConfigsResource(kind, name(subject), [configs.AlterableConfig(key, value)])
        return configs.AlterConfigsRequest(resources=[changed], validate_only=True)

    return request


def _incremental(kind: int, name: Callable[[Subject], str], key: str, value: str) -> Callable[[Subject, int], Any]:
    def request(subject: Subject, version: int) -> configs.IncrementalAlterConfigsRequest:
        change = configs.IncrementalAlterableConfig(key, 0, value)
        changed = configs.IncrementalAlterConfigsResource(kind, name(subject), [change])
        return configs.IncrementalAlterConfigsRequest(resources=[changed], validate_only=True)

    return request


def _move_replicas(subject: Subject, version: int) -> replicas.AlterReplicaLogDirsRequest:
    topic = replicas.AlterReplicaLogDirTopic(subject.topic, [0])
    return replicas.AlterReplicaLogDirsRequest(dirs=[replicas.AlterReplicaLogDir("/nowhere", [topic])])


def _log_dirs(subject: Subject, version: int) -> replicas.DescribeLogDirsRequest:
    return replicas.DescribeLogDirsRequest(topics=[replicas.DescribableLogDirTopic(subject.topic, [0])])


def _elect(subject: Subject, version: int) -> replicas.ElectLeadersRequest:
    wanted = replicas.ElectLeadersTopicPartitions(subject.topic, [0])
    return replicas.ElectLeadersRequest(topic_partitions=[wanted], timeout_ms=TIMEOUT_MS)


def _offset_delete(subject: Subject, version: int) -> group_offsets.OffsetDeleteRequest:
    wanted = group_offsets.OffsetDeleteRequestTopic(subject.topic, [group_offsets.OffsetDeleteRequestPartition(0)])
    return group_offsets.OffsetDeleteRequest(subject.group, [wanted])


def _alter_quotas(subject: Subject, version: int) -> quotas.AlterClientQuotasRequest:
    limit = quotas.OpData("producer_byte_rate", 1e6)
    entry = quotas.AlterClientQuotasEntry([quotas.EntityData("user", "nobody")], [limit])
    return quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True)


def _describe_quorum(subject: Subject, version: int) -> quorum.DescribeQuorumRequest:
    partition = quorum.DescribeQuorumRequestPartition(0)
    return quorum.DescribeQuorumRequest(topics=[quorum.DescribeQuorumRequestTopic("__cluster_metadata", [partition])])


def _describe_cluster(subject: Subject, version: int) -> metadata.DescribeClusterRequest:
    return metadata.DescribeClusterRequest(include_cluster_authorized_operations=True)


def _describe_producers(subject: Subject, version: int) -> transactions.DescribeProducersRequest:
    return transactions.DescribeProducersRequest(topics=[transactions.DescribeProducersTopic(subject.topic, [0])])


def _consumer_heartbeat(subject: Subject, version: int) -> consumer_groups.ConsumerGroupHeartbeatRequest:
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group_id=subject.group,
        member_id=MEMBER_ID,
        rebalance_timeout_ms=TIMEOUT_MS,
        subscribed_topic_names=[subject.topic],
        topic_partitions=[],
    )


def _share_heartbeat(subject: Subject, version: int) -> share_groups.ShareGroupHeartbeatRequest:
    return share_groups.ShareGroupHeartbeatRequest(
        group_id=subject.group, member_id=MEMBER_ID, subscribed_topic_names=[subject.topic]
    )


def streams_heartbeat(group_id: str, topic: str) -> streams_groups.StreamsGroupHeartbeatRequest:
    """A member joins, whose topology reads one topic."""
    return streams_groups.StreamsGroupHeartbeatRequest(
        group_id=group_id,
        member_id=MEMBER_ID,
        rebalance_timeout_ms=TIMEOUT_MS,
        topology=streams_groups.Topology(0, [streams_groups.Subtopology("0", [topic])]),
        process_id="process",
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )


def _topic_partitions(subject: Subject, version: int) -> metadata.DescribeTopicPartitionsRequest:
    return metadata.DescribeTopicPartitionsRequest(topics=[metadata.DescribeTopicPartitionsTopic(subject.topic)])


def _share_fetch(subject: Subject, version: int) -> share_fetch.ShareFetchRequest:
    wanted = share_fetch.ShareFetchTopic(subject.topic_id, [share_fetch.ShareFetchPartition(0)])
    return share_fetch.ShareFetchRequest(
        group_id=subject.group,
        member_id=MEMBER_ID,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        max_records=1,
        batch_size=1,
        topics=[wanted],
    )


def _share_acknowledge(subject: Subject, version: int) -> share_fetch.ShareAcknowledgeRequest:
    acknowledged = share_fetch.AcknowledgementBatch(0, 0, [1])
    partition = share_fetch.AcknowledgePartition(0, [acknowledged])
    return share_fetch.ShareAcknowledgeRequest(
        group_id=subject.group,
        member_id=MEMBER_ID,
        share_session_epoch=1,
        topics=[share_fetch.AcknowledgeTopic(subject.topic_id, [partition])],
    )


def _share_offsets(subject: Subject, version: int) -> share_groups.DescribeShareGroupOffsetsRequest:
    topic = share_groups.DescribeShareGroupOffsetsRequestTopic(subject.topic, [0])
    group = share_groups.DescribeShareGroupOffsetsRequestGroup(subject.group, [topic])
    return share_groups.DescribeShareGroupOffsetsRequest(groups=[group])


def _alter_share_offsets(subject: Subject, version: int) -> share_groups.AlterShareGroupOffsetsRequest:
    partition = share_groups.AlterShareGroupOffsetsRequestPartition(0, 0)
    topic = share_groups.AlterShareGroupOffsetsRequestTopic(subject.topic, [partition])
    return share_groups.AlterShareGroupOffsetsRequest(subject.group, [topic])


def _delete_share_offsets(subject: Subject, version: int) -> share_groups.DeleteShareGroupOffsetsRequest:
    topic = share_groups.DeleteShareGroupOffsetsRequestTopic(subject.topic)
    return share_groups.DeleteShareGroupOffsetsRequest(subject.group, [topic])


def _topic(subject: Subject) -> str:
    return subject.topic


def _group(subject: Subject) -> str:
    return subject.group


def _broker(subject: Subject) -> str:
    return str(NODE_ID)


QUESTIONS: tuple[Question, ...] = (
    question("Produce", (3, 12), [(WRITE, T)], _produce, E_M_I),
    question("Produce by id", (13,), [(WRITE, T)], _produce),
    question("Produce in a transaction", (11,), [(WRITE, X), (WRITE, T)], _produce_in_transaction),
    question("Fetch", (4, 12), [(READ, T)], _fetch, E_M_I),
    question("Fetch by id", (17,), [(READ, T)], _fetch),
    question("ListOffsets", (1, 10), [(DESCRIBE, T)], _list_offsets, E_M_I),
    question("Metadata", (4, 10, 13), [(DESCRIBE, T)], _metadata, E_M_I),
    question("Metadata by id", (13,), [(DESCRIBE, T)], _metadata_by_id),
    question("Metadata of all", (13,), [(DESCRIBE, T)], _metadata_of_all, ONE),
    question("Metadata that creates", (13,), [(DESCRIBE, T), (CREATE, T)], _metadata_that_creates, (Target.MISSING,)),
    question(
        "Metadata that creates in the cluster",
        (13,),
        [(DESCRIBE, T), (CREATE, C)],
        _metadata_that_creates,
        (Target.MISSING,),
    ),
    question("OffsetCommit", (2, 9), [(READ, G), (READ, T)], _offset_commit, E_M_I),
    question("OffsetCommit by id", (10,), [(READ, G), (READ, T)], _offset_commit),
    question("OffsetFetch", (1, 9), [(DESCRIBE, G), (DESCRIBE, T)], _offset_fetch, E_M_I),
    question("OffsetFetch by id", (10,), [(DESCRIBE, G), (DESCRIBE, T)], _offset_fetch),
    question(
        "OffsetFetch of all",
        (2, 9),
        [(DESCRIBE, G), (DESCRIBE, T)],
        lambda subject, version: _offset_fetch(subject, version, of_all=True),
    ),
    question("FindCoordinator of a group", (0, 6), [(DESCRIBE, G)], _find(0, _group)),
    question(
        "FindCoordinator of a transactional id",
        (1, 6),
        [(DESCRIBE, X)],
        _find(1, lambda subject: subject.transactional_id),
    ),
    question("JoinGroup", (2, 9), [(READ, G)], _join),
    question(
        "Heartbeat",
        (0, 4),
        [(READ, G)],
        lambda subject, _: classic_groups.HeartbeatRequest(subject.group, 1, "unknown-member"),
    ),
    question("LeaveGroup", (0, 5), [(READ, G)], _leave),
    question("SyncGroup", (0, 5), [(READ, G)], _sync),
    question("DescribeGroups", (0, 6), [(DESCRIBE, G)], _describe_groups),
    question("ListGroups", (0, 5), [(DESCRIBE, G)], lambda *_: groups.ListGroupsRequest(), ONE),
    question("ListGroups by the cluster", (5,), [(DESCRIBE, C)], lambda *_: groups.ListGroupsRequest(), ONE),
    question("CreateTopics", (2, 7), [(CREATE, T)], _create_topics),
    question("CreateTopics by the cluster", (2, 7), [(CREATE, C)], _create_topics),
    question("CreateTopics with configs", (7,), [(CREATE, T), (DESCRIBE_CONFIGS, T)], _create_topics),
    question("DeleteTopics", (1, 6), [(DELETE, T)], _delete_topics),
    question("DeleteTopics by the cluster", (6,), [(DELETE, C)], _delete_topics),
    question("DeleteTopics by id", (6,), [(DESCRIBE, T), (DELETE, T)], _delete_topics_by_id),
    question("DeleteRecords", (0, 2), [(DELETE, T)], _delete_records),
    question("InitProducerId", (0, 5), [(WRITE, X)], _init_producer_id),
    question("InitProducerId without an id", (0, 5), [(Operation.IDEMPOTENT_WRITE, C)], _init_idempotent, ONE),
    question("InitProducerId of any writer", (5,), [(WRITE, T)], _init_idempotent, ONE),
    question("OffsetForLeaderEpoch", (2, 4), [(DESCRIBE, T)], _epochs, E_M_I),
    question("AddPartitionsToTxn", (0, 3), [(WRITE, X), (WRITE, T)], _add_partitions, E_M_I),
    question("AddOffsetsToTxn", (0, 4), [(WRITE, X), (READ, G)], _add_offsets),
    question("EndTxn", (0, 5), [(WRITE, X)], _end_txn),
    question("TxnOffsetCommit", (0, 5), [(WRITE, X), (READ, G), (READ, T)], _txn_offset_commit),
    question("WriteTxnMarkers", (1,), [(ALTER, C)], _markers, ONE),
    question("DescribeAcls", (1, 3), [(DESCRIBE, C)], _describe_acls, ONE),
    question("CreateAcls", (1, 3), [(ALTER, C)], _create_acls, ONE),
    question("DeleteAcls", (1, 3), [(ALTER, C)], _delete_acls, ONE),
    question("DescribeConfigs of a topic", (1, 4), [(DESCRIBE_CONFIGS, T)], _describe_configs(2, _topic), E_M_I),
    question("DescribeConfigs of a group", (4,), [(DESCRIBE_CONFIGS, G)], _describe_configs(32, _group)),
    question("DescribeConfigs of a broker", (1, 4), [(DESCRIBE_CONFIGS, C)], _describe_configs(4, _broker), ONE),
    question("DescribeConfigs of loggers", (4,), [(DESCRIBE_CONFIGS, C)], _describe_configs(8, _broker), ONE),
    question("DescribeConfigs of client metrics", (4,), [(DESCRIBE_CONFIGS, C)], _describe_configs(16, _group), ONE),
    question(
        "AlterConfigs of a topic",
        (0, 2),
        [(ALTER_CONFIGS, T)],
        _alter_configs(2, _topic, "retention.ms", "1000"),
    ),
    question(
        "AlterConfigs of a group",
        (2,),
        [(ALTER_CONFIGS, G)],
        _alter_configs(32, _group, "consumer.session.timeout.ms", "50000"),
    ),
    question(
        "AlterConfigs of a broker",
        (2,),
        [(ALTER_CONFIGS, C)],
        _alter_configs(4, _broker, "log.retention.ms", "1000"),
        ONE,
    ),
    question(
        "IncrementalAlterConfigs of a topic",
        (0, 1),
        [(ALTER_CONFIGS, T)],
        _incremental(2, _topic, "retention.ms", "1000"),
    ),
    question(
        "IncrementalAlterConfigs of a group",
        (1,),
        [(ALTER_CONFIGS, G)],
        _incremental(32, _group, "consumer.session.timeout.ms", "50000"),
    ),
    question(
        "IncrementalAlterConfigs of a broker",
        (1,),
        [(ALTER_CONFIGS, C)],
        _incremental(4, _broker, "log.retention.ms", "1000"),
        ONE,
    ),
    question("AlterReplicaLogDirs", (1, 2), [(ALTER, C)], _move_replicas, ONE),
    question("DescribeLogDirs", (1, 4), [(DESCRIBE, C)], _log_dirs, ONE),
    question("CreatePartitions", (0, 3), [(ALTER, T)], _create_partitions),
    question("DeleteGroups", (0, 2), [(DELETE, G)], lambda subject, _: groups.DeleteGroupsRequest([subject.group])),
    question("ElectLeaders", (0, 2), [(ALTER, C)], _elect, ONE),
    question(
        "AlterPartitionReassignments",
        (0, 1),
        [(ALTER, C)],
        lambda *_: replicas.AlterPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS),
        ONE,
    ),
    question(
        "ListPartitionReassignments",
        (0,),
        [(DESCRIBE, C)],
        lambda *_: replicas.ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS),
        ONE,
    ),
    question("OffsetDelete", (0,), [(DELETE, G), (READ, T)], _offset_delete),
    question(
        "DescribeClientQuotas", (0, 1), [(DESCRIBE_CONFIGS, C)], lambda *_: quotas.DescribeClientQuotasRequest(), ONE
    ),
    question("AlterClientQuotas", (0, 1), [(ALTER_CONFIGS, C)], _alter_quotas, ONE),
    question(
        "DescribeUserScramCredentials",
        (0,),
        [(DESCRIBE, C)],
        # Kafka never answers a refused request about all users.
        lambda *_: authentication.DescribeUserScramCredentialsRequest([authentication.UserName("nobody")]),
        ONE,
    ),
    question(
        "AlterUserScramCredentials",
        (0,),
        [(ALTER, C)],
        lambda *_: authentication.AlterUserScramCredentialsRequest(
            deletions=[authentication.ScramCredentialDeletion("nobody", 1)]
        ),
        ONE,
    ),
    question("CreateDelegationToken", (1, 3), UNRELATED, _create_token, ONE),
    question("CreateDelegationToken for another user", (3,), UNRELATED, _create_token_for_another, ONE),
    question("CreateDelegationToken for a group", (1, 3), UNRELATED, _create_token_for_a_group, ONE),
    question(
        "RenewDelegationToken",
        (1, 2),
        UNRELATED,
        lambda *_: authentication.RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=-1),
        ONE,
    ),
    question(
        "ExpireDelegationToken",
        (1, 2),
        UNRELATED,
        lambda *_: authentication.ExpireDelegationTokenRequest(hmac=b"unknown", expiry_time_period_ms=-1),
        ONE,
    ),
    question(
        "DescribeDelegationToken",
        (1, 3),
        UNRELATED,
        lambda *_: authentication.DescribeDelegationTokenRequest(
            owners=[authentication.DescribeDelegationTokenOwner("User", "nobody")]
        ),
        ONE,
    ),
    question("DescribeQuorum", (0, 2), [(DESCRIBE, C)], _describe_quorum, ONE),
    question(
        "UpdateFeatures",
        (0, 2),
        [(ALTER, C)],
        lambda *_: nodes.UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS),
        ONE,
    ),
    question("UnregisterBroker", (0,), [(ALTER, C)], lambda *_: nodes.UnregisterBrokerRequest(99), ONE),
    question(
        "AddRaftVoter",
        (1,),
        [(ALTER, C)],
        lambda *_: quorum.AddRaftVoterRequest("of-another-cluster", TIMEOUT_MS, 99, MISSING_ID, []),
        ONE,
    ),
    question(
        "RemoveRaftVoter",
        (0,),
        [(ALTER, C)],
        lambda *_: quorum.RemoveRaftVoterRequest("of-another-cluster", 99, MISSING_ID),
        ONE,
    ),
    question("DescribeCluster", (0, 2), [(DESCRIBE, C)], _describe_cluster, ONE),
    question("DescribeProducers", (0,), [(READ, T)], _describe_producers, E_M_I),
    question(
        "DescribeTransactions",
        (0,),
        [(DESCRIBE, X)],
        lambda subject, _: transactions.DescribeTransactionsRequest([subject.transactional_id]),
    ),
    question("ListTransactions", (0, 1), [(DESCRIBE, X)], lambda *_: transactions.ListTransactionsRequest(), ONE),
    question(
        "ConsumerGroupHeartbeat",
        (1,),
        [(READ, G), (DESCRIBE, T)],
        _consumer_heartbeat,
        groups=GroupKind.CONSUMER,
    ),
    question(
        "ConsumerGroupDescribe",
        (0, 1),
        [(DESCRIBE, G), (DESCRIBE, T)],
        lambda subject, _: consumer_groups.ConsumerGroupDescribeRequest([subject.group], True),
        groups=GroupKind.CONSUMER,
    ),
    question(
        "ListConfigResources", (0, 1), [(DESCRIBE_CONFIGS, C)], lambda *_: configs.ListConfigResourcesRequest(), ONE
    ),
    question("DescribeTopicPartitions", (0,), [(DESCRIBE, T)], _topic_partitions, E_M_I),
    question("ShareGroupHeartbeat", (1,), [(READ, G), (DESCRIBE, T)], _share_heartbeat, groups=GroupKind.SHARE),
    question(
        "ShareGroupDescribe",
        (1,),
        [(DESCRIBE, G), (DESCRIBE, T)],
        lambda subject, _: share_groups.ShareGroupDescribeRequest([subject.group], True),
        groups=GroupKind.SHARE,
    ),
    question(
        "StreamsGroupHeartbeat",
        (0,),
        [(READ, G), (DESCRIBE, T)],
        lambda subject, _: streams_heartbeat(subject.group, subject.topic),
        E_M_I,
        groups=GroupKind.STREAMS,
    ),
    question(
        "StreamsGroupDescribe",
        (0,),
        [(DESCRIBE, G), (DESCRIBE, T)],
        lambda subject, _: streams_groups.StreamsGroupDescribeRequest([subject.group], True),
        groups=GroupKind.STREAMS,
    ),
    question("ShareFetch", (1,), [(READ, G), (READ, T)], _share_fetch, groups=GroupKind.SHARE),
    question("ShareAcknowledge", (1,), [(READ, G), (READ, T)], _share_acknowledge, groups=GroupKind.SHARE),
    question("DescribeShareGroupOffsets", (0,), [(DESCRIBE, G), (DESCRIBE, T)], _share_offsets, groups=GroupKind.SHARE),
    question("AlterShareGroupOffsets", (0,), [(READ, G), (READ, T)], _alter_share_offsets, groups=GroupKind.SHARE),
    question("DeleteShareGroupOffsets", (0,), [(DELETE, G), (READ, T)], _delete_share_offsets, groups=GroupKind.SHARE),
)
