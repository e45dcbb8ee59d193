from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.result import finished
from millbeck.kernel.errors import StaleBrokerEpoch, UnsupportedVersion
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.directories import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from millbeck.metadata.image.topics import RECOVERING
from millbeck.metadata.records import ConfigRecord, FeatureLevelRecord
from millbeck.wire.messages.replicas import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopic,
)

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
TOPIC_ID = b"topic-id--------"
ONE, TWO = b"disk one--------", b"disk two--------"


@pytest.fixture
def image(three_brokers: MetadataImage, with_topic: WithTopic) -> MetadataImage:
    broker = replace(three_brokers.cluster.brokers[1], directories=(ONE, TWO))
    image = replace(
        three_brokers, cluster=replace(three_brokers.cluster, brokers={**three_brokers.cluster.brokers, 1: broker})
    )
    return with_topic(image, {"replicas": [1, 2]}, {"replicas": [2, 3]}, {"replicas": [1]})


def assigned(
    controller: Controller, image: MetadataImage, directory: bytes, *indexes: int, topic_id: bytes = TOPIC_ID
) -> tuple[list[int], list[Any]]:
    request = AssignReplicasToDirsRequest(
        broker_id=1,
        broker_epoch=image.cluster.brokers[1].epoch,
        directories=[
            AssignReplicasToDirsDirectory(
                directory,
                [AssignReplicasToDirsTopic(topic_id, [AssignReplicasToDirsPartition(index) for index in indexes])],
            )
        ],
    )
    result = finished(controller.assign_replicas_to_directories(image, request))
    [answer] = result.response.directories
    assert answer.id == directory
    return [each.error_code for each in answer.topics[0].partitions], result.records


def test_a_replica_is_where_its_broker_says(controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
    assert image.topics.by_id[TOPIC_ID].partitions[0].directory(1) == UNASSIGNED_DIRECTORY
    codes, records = assigned(controller, image, TWO, 0, 1, 9)
    assert codes == [0, 6, 3]
    after = replayed(image, records)
    partition = after.topics.by_id[TOPIC_ID].partitions[0]
    assert (partition.directory(1), partition.leader, partition.leader_epoch) == (TWO, 1, 5)
    assert assigned(controller, after, TWO, 0) == ([0], [])
    assert assigned(controller, image, TWO, 0, topic_id=b"x" * 16) == ([100], [])


@pytest.mark.parametrize("directory", [b"offline disk----", LOST_DIRECTORY])
def test_a_replica_in_an_offline_directory_is_as_good_as_gone(
    controller: Controller, image: MetadataImage, replayed: Replayed, directory: bytes
) -> None:
    codes, records = assigned(controller, image, directory, 0, 2)
    assert codes == [0, 0]
    after = replayed(image, records)
    shared, alone = (after.topics.by_id[TOPIC_ID].partitions[index] for index in (0, 2))
    assert (shared.directory(1), shared.leader, shared.isr) == (directory, 2, (2,))
    assert (alone.leader, alone.isr) == (-1, (1,))
    found = replayed(after, assigned(controller, after, ONE, 2)[1])
    assert found.topics.by_id[TOPIC_ID].partitions[2].leader == 1


def test_only_the_registered_process_may_say(controller: Controller, image: MetadataImage) -> None:
    with pytest.raises(StaleBrokerEpoch):
        finished(
            controller.assign_replicas_to_directories(image, AssignReplicasToDirsRequest(broker_id=1, broker_epoch=-1))
        )
    old = replace(image, features=replace(image.features, levels={"metadata.version": 16}))
    with pytest.raises(UnsupportedVersion):
        assigned(controller, old, ONE, 0)


@pytest.mark.parametrize(("directory", "eligible"), [(b"offline disk----", (1,)), (LOST_DIRECTORY, ())])
def test_who_says_that_its_log_is_lost_is_not_eligible_to_lead(
    controller: Controller, image: MetadataImage, replayed: Replayed, directory: bytes, eligible: tuple[int, ...]
) -> None:
    tracked = replayed(
        image,
        [
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
            ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="2"),
        ],
    )
    _, records = assigned(controller, tracked, directory, 0)
    partition = replayed(tracked, records).topics.by_id[TOPIC_ID].partitions[0]
    assert (partition.isr, partition.eligible_leader_replicas) == ((2,), eligible)


def test_a_replica_whose_directory_is_gone_begins_with_nothing_and_is_not_elected_for_what_it_had(
    controller: Controller, tracking: MetadataImage, with_topic: WithTopic, replayed: Replayed
) -> None:
    """A broker that stopped in good order comes back without one of its disks: the other replicas have the records."""
    gone = b"disk that is out"
    partition = {
        "replicas": [1, 2, 3],
        "isr": [],
        "leader": -1,
        "eligible_leader_replicas": [1, 2, 3],
        "last_known_elr": [1],
        "directories": [gone, UNASSIGNED_DIRECTORY, UNASSIGNED_DIRECTORY],
    }
    image = with_topic(tracking, partition, {"replicas": [1], **_nobody(gone)}, min_insync_replicas="2")
    for broker_id in (2, 3):
        fenced = finished(controller.fence_broker(image, broker_id, image.cluster.brokers[broker_id].epoch))
        image = replayed(image, fenced.records)
    [new] = image.cluster.brokers[1].directories
    after = replayed(image, assigned(controller, image, new, 0, 1)[1])
    shared, alone = (after.topics.by_id[TOPIC_ID].partitions[index] for index in (0, 1))
    assert (shared.directory(1), shared.leader, shared.eligible_leader_replicas) == (new, -1, (2, 3))
    assert (alone.leader, alone.leader_recovery_state) == (1, RECOVERING), "there is nobody else to wait for"
    back = replayed(after, finished(controller.unfence_broker(after, 2, after.cluster.brokers[2].epoch)).records)
    assert back.topics.by_id[TOPIC_ID].partitions[0].leader == 2


def _nobody(directory: bytes) -> dict[str, Any]:
    return {
        "isr": [],
        "leader": -1,
        "eligible_leader_replicas": [1],
        "last_known_elr": [1],
        "directories": [directory],
    }


def test_the_only_replica_whose_log_was_lost_leads_again_once_it_is_back(
    controller: Controller, tracking: MetadataImage, with_topic: WithTopic, replayed: Replayed
) -> None:
    image = with_topic(tracking, {"replicas": [1]})
    lost = replayed(image, assigned(controller, image, LOST_DIRECTORY, 0)[1])
    partition = lost.topics.by_id[TOPIC_ID].partitions[0]
    assert (partition.leader, partition.isr, partition.last_known_elr) == (-1, (), (1,))
    epoch = lost.cluster.brokers[1].epoch
    fenced = replayed(lost, finished(controller.fence_broker(lost, 1, epoch)).records)
    back = replayed(fenced, finished(controller.unfence_broker(fenced, 1, epoch)).records)
    assert back.topics.by_id[TOPIC_ID].partitions[0].leader == -1, "its log is still lost"
    [directory] = back.cluster.brokers[1].directories
    repaired = replayed(back, assigned(controller, back, directory, 0)[1]).topics.by_id[TOPIC_ID].partitions[0]
    assert (repaired.leader, repaired.isr, repaired.leader_recovery_state) == (1, (1,), RECOVERING)
