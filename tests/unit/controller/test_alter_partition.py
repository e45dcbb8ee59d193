from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.partition_change import PartitionChange
from millbeck.controller.result import finished
from millbeck.kernel.errors import StaleBrokerEpoch, UnknownServerError
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.topics import RECOVERED, RECOVERING
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
TOPIC_ID = b"topic-id--------"


@pytest.fixture
def image(three_brokers: MetadataImage, with_topic: WithTopic) -> MetadataImage:
    return with_topic(three_brokers, {"replicas": [1, 2, 3], "isr": [1, 2]})


def asked(
    image: MetadataImage,
    isr: list[int],
    *,
    by: int = 1,
    topic_id: bytes = TOPIC_ID,
    with_epochs: bool = True,
    **fields: Any,
) -> AlterPartitionRequest:
    partition = image.topics.by_id[TOPIC_ID].partitions[0]
    values: dict[str, Any] = {
        "partition_index": 0,
        "leader_epoch": partition.leader_epoch,
        "partition_epoch": partition.partition_epoch,
        "leader_recovery_state": RECOVERED,
        **fields,
    }
    if with_epochs:
        brokers = image.cluster.brokers
        states = [BrokerState(member, brokers[member].epoch if member in brokers else 0) for member in isr]
        values.setdefault("new_isr_with_epochs", states)
    else:
        values["new_isr"] = isr
    return AlterPartitionRequest(
        broker_id=by,
        broker_epoch=image.cluster.brokers[by].epoch,
        topics=[AlterPartitionTopic(topic_id, [AlterPartitionPartition(**values)])],
    )


def outcome(controller: Controller, image: MetadataImage, request: AlterPartitionRequest) -> Any:
    result = finished(controller.alter_partition(image, request))
    [topic] = result.response.topics
    [answer] = topic.partitions
    return answer, result.records


@pytest.mark.parametrize("with_epochs", [True, False])
def test_the_leader_changes_who_is_in_sync(
    controller: Controller, image: MetadataImage, replayed: Replayed, with_epochs: bool
) -> None:
    answer, records = outcome(controller, image, asked(image, [1, 2, 3], with_epochs=with_epochs))
    assert answer == AlterPartitionPartitionResult(
        partition_index=0, leader_id=1, leader_epoch=5, isr=[1, 2, 3], partition_epoch=8
    )
    partition = replayed(image, records).topics.by_id[TOPIC_ID].partitions[0]
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1, 2, 3), 5, 8)


def test_asking_for_what_is_so_changes_nothing(controller: Controller, image: MetadataImage) -> None:
    answer, records = outcome(controller, image, asked(image, [1, 2]))
    assert (answer.error_code, answer.partition_epoch, records) == (0, 7, [])


REFUSED: dict[str, tuple[list[int], dict[str, Any], int]] = {
    "leader epoch of the past": ([1], {"leader_epoch": 4}, 74),
    "leader epoch of the future": ([1], {"leader_epoch": 6}, 41),
    "partition epoch of the past": ([1], {"partition_epoch": 6}, 95),
    "partition epoch of the future": ([1], {"partition_epoch": 8}, 41),
    "not the leader": ([1, 2], {"by": 2}, 42),
    "no replica": ([1, 4], {}, 42),
    "twice": ([1, 1], {}, 42),
    "nobody": ([], {}, 42),
    "without the leader": ([2, 3], {}, 42),
    "recovering with others": ([1, 2], {"leader_recovery_state": RECOVERING}, 42),
    "recovering anew": ([1], {"leader_recovery_state": RECOVERING}, 42),
    "unknown recovery": ([1], {"leader_recovery_state": 7}, 42),
    "unknown partition": ([1], {"partition_index": 3}, 3),
    "unknown topic": ([1], {"topic_id": b"x" * 16}, 100),
    "another process": ([1, 3], {"new_isr_with_epochs": [BrokerState(1, -1), BrokerState(3, 1)]}, 107),
}


@pytest.mark.parametrize(("isr", "fields", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_changes_nothing(
    controller: Controller, image: MetadataImage, isr: list[int], fields: dict[str, Any], code: int
) -> None:
    answer, records = outcome(controller, image, asked(image, isr, **fields))
    assert (answer.error_code, records) == (code, [])


@pytest.mark.parametrize("change", [{"is_fenced": True}, {"in_controlled_shutdown": True}])
def test_only_active_brokers_come_in(controller: Controller, image: MetadataImage, change: dict[str, Any]) -> None:
    broker = replace(image.cluster.brokers[3], **change)
    image = replace(image, cluster=replace(image.cluster, brokers={**image.cluster.brokers, 3: broker}))
    for with_epochs in (True, False):
        answer, records = outcome(controller, image, asked(image, [1, 2, 3], with_epochs=with_epochs))
        assert (answer.error_code, records) == (107, [])


def test_a_log_in_a_lost_directory_does_not_come_in(
    controller: Controller, three_brokers: MetadataImage, with_topic: WithTopic
) -> None:
    directories = [three_brokers.cluster.brokers[broker_id].directories[0] for broker_id in (1, 2)]
    lost = {"replicas": [1, 2, 3], "isr": [1, 2], "directories": [*directories, b"lost" * 4]}
    image = with_topic(three_brokers, lost)
    answer, records = outcome(controller, image, asked(image, [1, 2, 3]))
    assert (answer.error_code, records) == (107, [])


def test_a_process_that_is_not_registered_is_not_heard(controller: Controller, image: MetadataImage) -> None:
    request = asked(image, [1])
    request.broker_epoch += 1
    with pytest.raises(StaleBrokerEpoch):
        finished(controller.alter_partition(image, request))


def test_a_leader_ends_its_recovery_alone_or_with_others(
    controller: Controller, three_brokers: MetadataImage, with_topic: WithTopic, replayed: Replayed
) -> None:
    image = with_topic(three_brokers, {"replicas": [1, 2], "isr": [1], "leader_recovery_state": RECOVERING})
    for isr in ([1], [1, 2]):
        answer, records = outcome(controller, image, asked(image, isr))
        assert (answer.error_code, answer.leader_recovery_state) == (0, RECOVERED)
        after = replayed(image, records).topics.by_id[TOPIC_ID].partitions[0]
        assert (after.leader_recovery_state, after.isr) == (RECOVERED, tuple(isr))
    answer, records = outcome(controller, image, asked(image, [1, 2], leader_recovery_state=RECOVERING))
    assert (answer.error_code, records) == (42, []), "nobody is in sync with what is still being recovered"


def test_the_last_new_replica_completes_a_move(
    controller: Controller, three_brokers: MetadataImage, with_topic: WithTopic, replayed: Replayed
) -> None:
    moving = {"replicas": [3, 2, 1], "isr": [1, 2], "leader": 1, "adding_replicas": [3], "removing_replicas": [1]}
    image = with_topic(three_brokers, moving)
    answer, records = outcome(controller, image, asked(image, [1, 2, 3]))
    # The leader is told that it is not any more, and the change is made.
    assert answer.error_code == 108
    after = replayed(image, records).topics.by_id[TOPIC_ID].partitions[0]
    assert (after.replicas, after.isr, after.leader, after.leader_epoch) == ((3, 2), (2, 3), 3, 6)


def test_a_partition_named_twice_is_changed_once(controller: Controller, image: MetadataImage) -> None:
    request = asked(image, [1])
    request.topics[0].partitions *= 2
    result = finished(controller.alter_partition(image, request))
    assert [each.error_code for each in result.response.topics[0].partitions] == [0, 95]
    assert len(result.records) == 1


def test_one_bad_partition_does_not_keep_the_others_of_the_request(
    controller: Controller, three_brokers: MetadataImage, with_topic: WithTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = with_topic(three_brokers, *({"replicas": [1, 2], "isr": [1, 2]} for _ in range(3)))
    original = PartitionChange.build

    def build(self: PartitionChange, topic_id: bytes, partition_id: int) -> Any:
        if partition_id == 1:
            raise ValueError(partition_id)
        return original(self, topic_id, partition_id)

    monkeypatch.setattr(PartitionChange, "build", build)
    request = asked(image, [1])
    (only,) = request.topics[0].partitions
    request.topics[0].partitions = [copy(only), copy(only), copy(only)]
    for index, partition in enumerate(request.topics[0].partitions):
        partition.partition_index = index
    result = finished(controller.alter_partition(image, request))
    codes = [partition.error_code for partition in result.response.topics[0].partitions]
    assert codes == [0, UnknownServerError.code, 0]
    assert len(result.records) == 2
    assert controller.failure_count == 1
