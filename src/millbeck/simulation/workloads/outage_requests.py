"""Requests that a broker can answer by itself while no controller can be elected.

`WithoutController` sends them all. Every client API is tested here or in `outage_changes`, except those in `NOT_ASKED`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.wire.messages.acls import DescribeAclsRequest
from millbeck.wire.messages.authentication import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    DescribeUserScramCredentialsRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)
from millbeck.wire.messages.classic_groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from millbeck.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource, ListConfigResourcesRequest
from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from millbeck.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millbeck.wire.messages.groups import DeleteGroupsRequest, FindCoordinatorRequest, ListGroupsRequest
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millbeck.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopic,
    MetadataRequest,
    MetadataRequestTopic,
)
from millbeck.wire.messages.quotas import ComponentData, DescribeClientQuotasRequest
from millbeck.wire.messages.replicas import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from millbeck.wire.messages.share_fetch import ShareAcknowledgeRequest
from millbeck.wire.messages.share_groups import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
)
from millbeck.wire.messages.streams_groups import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest
from millbeck.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersTopic,
    DescribeTransactionsRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
)

KNOWN: Final = "known"
GROUP, TRANSACTION, SHARE = 0, 1, 2
AT_ONCE_S: Final = 2.0
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
LATEST: Final = -1
LEAVES: Final = -1
NOT_ASKED: Final[Mapping[int, str]] = {
    1: "Fetch waits for records, which is its purpose",
    17: "SaslHandshake concerns the connection alone",
    18: "ApiVersions is sent behind each request",
    36: "SaslAuthenticate concerns the connection alone",
    27: "WriteTxnMarkers is sent by brokers",
    83: "InitializeShareGroupState is sent by brokers",
    84: "ReadShareGroupState is sent by brokers",
    85: "WriteShareGroupState is sent by brokers",
    86: "DeleteShareGroupState is sent by brokers",
    87: "ReadShareGroupStateSummary is sent by brokers",
}
"""API keys that are not tested, with the reason."""
MEMBER_ID: Final = uuid_text(bytes([1]) * 16)
SHARE_KEY: Final = f"group:{MEMBER_ID}:0"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCase:
    name: str
    request: object
    version: int
    limit_s: float = AT_ONCE_S
    delay_s: float = 0.0
    """The time after the nodes were killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The topics, groups and ids that exist when the nodes are killed."""

    survivor: int
    led_partition: int
    """A partition of ``KNOWN`` that the survivor leads."""
    topic_id: Uuid
    groups: Sequence[str]
    """Ids of groups without state that the survivor coordinates; the same for the transactional ids."""
    transactional_ids: Sequence[str]
    producers: Mapping[str, tuple[int, int]]
    """Producer id and epoch of those transactional ids that have one; the last of them has an open transaction."""
    now_ms: int


def metadata(*names: str, creates: bool = True) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)


def coordinator_of(key_type: int, key: str) -> FindCoordinatorRequest:
    """A FindCoordinator request for one key."""
    return FindCoordinatorRequest(key=key, key_type=key_type)


def coordinators_of(key_type: int, *keys: str) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))


def local_requests(known: Situation) -> list[RequestCase]:
    """The requests that a broker answers at once from its own state."""
    asked: dict[str, tuple[object, int]] = _about_cluster(known) | _about_groups(known) | _about_logs(known)
    return [RequestCase(name=name, request=request, version=version) for name, (request, version) in asked.items()]


def _about_cluster(known: Situation) -> dict[str, tuple[object, int]]:
    resources = [
        DescribeConfigsResource(TOPIC_RESOURCE, KNOWN, None),
        DescribeConfigsResource(BROKER_RESOURCE, str(known.survivor), None),
    ]
    described = [DescribeTopicPartitionsTopic(KNOWN), DescribeTopicPartitionsTopic("missing")]
    return {
        "Metadata v6 known, missing": (metadata(KNOWN, "missing"), 6),
        "Metadata v12 missing": (metadata("missing-too"), 12),
        "Metadata v9 all": (MetadataRequest(topics=None), 9),
        "DescribeTopicPartitions known, missing": (DescribeTopicPartitionsRequest(topics=described), 0),
        "DescribeConfigs topic, broker": (DescribeConfigsRequest(resources=resources), 4),
        "DescribeCluster": (DescribeClusterRequest(), 1),
        "ListConfigResources": (ListConfigResourcesRequest(), 1),
        "DescribeAcls": (DescribeAclsRequest(resource_type_filter=1, operation=1, permission_type=1), 3),
        "DescribeClientQuotas": (DescribeClientQuotasRequest([ComponentData("user", 2, None)]), 1),
        "DescribeUserScramCredentials": (DescribeUserScramCredentialsRequest(users=None), 0),
        "DescribeDelegationToken": (DescribeDelegationTokenRequest(owners=None), 3),
        "CreateDelegationToken, without a secret key": (CreateDelegationTokenRequest(max_lifetime_ms=60_000), 3),
        "RenewDelegationToken, without a secret key": (RenewDelegationTokenRequest(b"key", 60_000), 2),
        "ExpireDelegationToken, without a secret key": (ExpireDelegationTokenRequest(b"key", 60_000), 2),
    }


def _about_groups(known: Situation) -> dict[str, tuple[object, int]]:
    group, transactional_id = known.groups[0], known.transactional_ids[0]
    member = MemberIdentity("nobody")
    topic = OffsetDeleteRequestTopic(KNOWN, [OffsetDeleteRequestPartition(0)])
    offsets = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(KNOWN, partition_indexes=[0])])
    # It leaves an empty group in memory, which others would delete.
    joining = JoinGroupRequest(
        group_id=known.groups[-1],
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )
    return {
        "FindCoordinator v3 group": (coordinator_of(GROUP, group), 3),
        "FindCoordinator v6 group": (coordinators_of(GROUP, group), 6),
        "FindCoordinator v3 transaction": (coordinator_of(TRANSACTION, transactional_id), 3),
        "FindCoordinator v6 transaction": (coordinators_of(TRANSACTION, transactional_id), 6),
        "FindCoordinator v6 share, no topic": (coordinators_of(SHARE, SHARE_KEY), 6),
        "InitProducerId, ids left": (InitProducerIdRequest(None), 4),
        "DescribeTransactions": (DescribeTransactionsRequest([transactional_id]), 0),
        "ListTransactions": (ListTransactionsRequest(), 1),
        "ListGroups": (ListGroupsRequest(), 4),
        "DescribeGroups": (DescribeGroupsRequest([group]), 5),
        "ConsumerGroupDescribe": (ConsumerGroupDescribeRequest([group]), 1),
        "ShareGroupDescribe": (ShareGroupDescribeRequest([group]), 1),
        "DescribeShareGroupOffsets": (
            DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, None)]),
            1,
        ),
        "DeleteShareGroupOffsets, no group": (
            DeleteShareGroupOffsetsRequest(group, [DeleteShareGroupOffsetsRequestTopic(KNOWN)]),
            0,
        ),
        "ShareAcknowledge, no session": (ShareAcknowledgeRequest(group, MEMBER_ID, 1), 1),
        "StreamsGroupDescribe": (StreamsGroupDescribeRequest([group]), 0),
        "StreamsGroupHeartbeat, no group": (StreamsGroupHeartbeatRequest(group, MEMBER_ID, LEAVES), 0),
        "OffsetFetch": (OffsetFetchRequest(groups=[offsets]), 8),
        "OffsetDelete, no group": (OffsetDeleteRequest(group, [topic]), 0),
        "DeleteGroups, no group": (DeleteGroupsRequest([group]), 2),
        "JoinGroup, without a member id": (joining, 9),
        "SyncGroup, no member": (SyncGroupRequest(group, 1, "nobody"), 5),
        "Heartbeat, no member": (HeartbeatRequest(group, 1, "nobody"), 4),
        "LeaveGroup, no member": (LeaveGroupRequest(group, members=[member]), 5),
    }


def _about_logs(known: Situation) -> dict[str, tuple[object, int]]:
    index = known.led_partition
    moved = AlterReplicaLogDir("/nowhere", [AlterReplicaLogDirTopic(KNOWN, [index])])
    return {
        "ListOffsets": (
            ListOffsetsRequest(-1, 0, [ListOffsetsTopic(KNOWN, [ListOffsetsPartition(index, -1, LATEST)])]),
            7,
        ),
        "OffsetForLeaderEpoch": (
            OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(KNOWN, [OffsetForLeaderPartition(index, -1, 0)])]),
            4,
        ),
        "DescribeProducers": (DescribeProducersRequest([DescribeProducersTopic(KNOWN, [index])]), 0),
        "DescribeLogDirs": (DescribeLogDirsRequest(topics=None), 4),
        "AlterReplicaLogDirs, no directory": (AlterReplicaLogDirsRequest([moved]), 2),
    }
