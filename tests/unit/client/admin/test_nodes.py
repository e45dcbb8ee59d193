"""Administration of the cluster itself."""

from __future__ import annotations

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import FeatureUpdate, UpgradeType
from millbeck.client.errors import Disconnected
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    DuplicateVoter,
    InvalidUpdateVersion,
    KafkaStorageError,
    VoterNotFound,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages import quorum as quorum_messages
from millbeck.wire.messages.metadata import (
    ApiVersionsRequest,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from millbeck.wire.messages.nodes import UpdatableFeatureResult, UpdateFeaturesRequest, UpdateFeaturesResponse
from millbeck.wire.messages.quorum import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from millbeck.wire.messages.replicas import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

ID = b"d" * 16


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def test_describing_the_cluster() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        brokers = [
            DescribeClusterBroker(broker_id=2, host="h2", port=2, rack="r", is_fenced=True),
            DescribeClusterBroker(broker_id=1, host="h1", port=1),
        ]
        asked = []

        def answer(call: Call) -> DescribeClusterResponse:
            asked.append(call.message.include_fenced_brokers)
            return DescribeClusterResponse(cluster_id="c", controller_id=2, brokers=brokers)

        cluster.on(DescribeClusterRequest, answer)
        async with open_admin(cluster) as admin:
            await admin.describe_cluster()
            found = await admin.describe_cluster(include_fenced_brokers=True)
        assert asked == [False, True]
        assert (found.cluster_id, found.controller_id) == ("c", 2)
        assert [(node.node_id, node.rack, node.is_fenced) for node in found.nodes] == [(1, None, False), (2, "r", True)]

    simulate(scenario)


def test_describing_the_cluster_falls_back_to_metadata() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(DescribeClusterRequest, 1, 0)
        async with open_admin(cluster) as admin:
            found = await admin.describe_cluster()
        assert found.cluster_id == "fake"
        assert [node.node_id for node in found.nodes] == [1, 2]

    simulate(scenario, brokers=2)


def test_an_error_for_the_whole_answer_is_raised() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(
            DescribeClusterRequest,
            lambda call: DescribeClusterResponse(error_code=ClusterAuthorizationFailed.code, error_message="no"),
        )
        async with open_admin(cluster) as admin:
            with pytest.raises(ClusterAuthorizationFailed, match="no"):
                await admin.describe_cluster()

    simulate(scenario)


def test_log_directories_of_every_broker() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def describe(call: Call) -> DescribeLogDirsResponse:
            entry = DescribeLogDirsPartition(partition_index=3, partition_size=77, offset_lag=1, is_future_key=True)
            return DescribeLogDirsResponse(
                results=[
                    DescribeLogDirsResult(
                        log_dir=f"data-{call.node_id}",
                        topics=[DescribeLogDirsTopic(name="a", partitions=[entry])],
                        total_bytes=100,
                        usable_bytes=50,
                    ),
                    DescribeLogDirsResult(log_dir="broken", error_code=KafkaStorageError.code),
                ]
            )

        cluster.on(DescribeLogDirsRequest, describe)
        async with open_admin(cluster) as admin:
            found = await admin.describe_log_dirs()
            assert sorted(found.succeeded) == [1, 2]
            good, broken = found[2]
            assert (good.path, good.total_bytes, good.usable_bytes, good.error) == ("data-2", 100, 50, None)
            (replica,) = good.replicas
            assert (replica.partition, replica.size_bytes, replica.is_future) == (TopicPartition("a", 3), 77, True)
            assert isinstance(broken.error, KafkaStorageError)
            cluster.brokers[2].stop()
            found = await admin.describe_log_dirs([1, 2], timeout_s=5)
            assert isinstance(found.failed[2], Disconnected)
            assert list(found.succeeded) == [1]

    simulate(scenario, brokers=2)


def test_the_metadata_quorum() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        voter = quorum_messages.QuorumReplica(
            replica_id=1, replica_directory_id=ID, log_end_offset=9, last_fetch_timestamp=5
        )
        partition = quorum_messages.DescribeQuorumPartition(
            leader_id=1, leader_epoch=3, high_watermark=8, current_voters=[voter], observers=[]
        )
        listener = quorum_messages.QuorumListener(name="CONTROLLER", host="h", port=9093)
        cluster.on(
            quorum_messages.DescribeQuorumRequest,
            lambda call: quorum_messages.DescribeQuorumResponse(
                topics=[quorum_messages.DescribeQuorumTopic(topic_name="__cluster_metadata", partitions=[partition])],
                nodes=[quorum_messages.QuorumNode(node_id=1, listeners=[listener])],
            ),
        )
        async with open_admin(cluster) as admin:
            found = await admin.describe_quorum()
        assert (found.leader_id, found.leader_epoch, found.high_watermark) == (1, 3, 8)
        assert (found.voters[0].directory_id, found.voters[0].log_end_offset) == (ID, 9)
        assert found.endpoints == {1: (("CONTROLLER", "h", 9093),)}
        (call,) = cluster.asked(quorum_messages.DescribeQuorumRequest)
        assert call.message.topics[0].topic_name == "__cluster_metadata"

    simulate(scenario)


def test_voters_are_added_and_removed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        refusals = [0, DuplicateVoter.code]
        cluster.on(AddRaftVoterRequest, lambda call: AddRaftVoterResponse(error_code=refusals.pop(0)))
        cluster.on(RemoveRaftVoterRequest, lambda call: RemoveRaftVoterResponse(error_code=VoterNotFound.code))
        async with open_admin(cluster) as admin:
            await admin.add_raft_voter(4, ID, [("CONTROLLER", "h", 9093)], cluster_id="c")
            (call,) = cluster.asked(AddRaftVoterRequest)
            listeners = [(each.name, each.host, each.port) for each in call.message.listeners]
            assert (call.message.voter_id, call.message.voter_directory_id, listeners) == (
                4,
                ID,
                [("CONTROLLER", "h", 9093)],
            )
            assert (call.message.cluster_id, call.message.ack_when_committed) == ("c", True)
            with pytest.raises(DuplicateVoter):
                await admin.add_raft_voter(4, ID, [("CONTROLLER", "h", 9093)])
            with pytest.raises(VoterNotFound):
                await admin.remove_raft_voter(4, ID, cluster_id="c")
        (call,) = cluster.asked(RemoveRaftVoterRequest)
        assert (call.message.voter_id, call.message.voter_directory_id) == (4, ID)

    simulate(scenario)


def test_features_are_asked_for_each_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        level = 1

        def versions(call: Call) -> object:
            response = cluster.versions()
            response.supported_features = [SupportedFeatureKey(name="f", min_version=0, max_version=2)]
            response.finalized_features = [
                FinalizedFeatureKey(name="f", min_version_level=level, max_version_level=level)
            ]
            response.finalized_features_epoch = level
            return response

        cluster.on(ApiVersionsRequest, versions)
        async with open_admin(cluster) as admin:
            assert (await admin.describe_features()).finalized == {"f": (1, 1)}
            level = 2
            found = await admin.describe_features()
            assert (found.supported, found.finalized, found.finalized_epoch) == ({"f": (0, 2)}, {"f": (2, 2)}, 2)

    simulate(scenario)


@pytest.mark.parametrize("highest", [0, 1, 2])
def test_updating_features(highest: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(UpdateFeaturesRequest, 0, highest)
        bad = UpdatableFeatureResult(feature="b", error_code=InvalidUpdateVersion.code, error_message="no b")
        cluster.on(
            UpdateFeaturesRequest,
            lambda call: (
                UpdateFeaturesResponse(results=[UpdatableFeatureResult(feature="a"), bad])
                if highest < 2
                else UpdateFeaturesResponse(error_code=InvalidUpdateVersion.code, error_message="no b")
            ),
        )
        updates = {
            "a": FeatureUpdate(level=1),
            "b": FeatureUpdate(level=0, upgrade_type=UpgradeType.SAFE_DOWNGRADE),
        }
        async with open_admin(cluster) as admin:
            if highest == 2:
                with pytest.raises(InvalidUpdateVersion, match="no b"):
                    await admin.update_features(updates)
            else:
                outcomes = await admin.update_features(updates)
                assert list(outcomes.succeeded) == ["a"]
                assert str(outcomes.failed["b"]) == "no b"
        (call,) = cluster.asked(UpdateFeaturesRequest)
        sent = call.message.feature_updates[1]
        assert (sent.allow_downgrade, sent.upgrade_type) == ((True, 1) if highest == 0 else (False, 2))

    simulate(scenario)
