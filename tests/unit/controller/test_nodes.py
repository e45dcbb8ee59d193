from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller, NodeRegistration
from millbeck.controller.result import finished
from millbeck.kernel.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image import EMPTY, Endpoint, MetadataImage
from millbeck.metadata.image.directories import UNASSIGNED_DIRECTORY
from millbeck.metadata.records import FeatureLevelRecord, RegisterBrokerRecord
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
REGISTRATION = NodeRegistration(
    node_id=1,
    incarnation_id=b"new-incarnation!",
    endpoints=(Endpoint(listener="PLAINTEXT", host="h", port=9092),),
    directories=(b"d" * 16,),
)


def test_a_brokers_epoch_is_the_offset_of_its_record(controller: Controller, one_broker: MetadataImage) -> None:
    image = replace(one_broker, offset=41)
    result = finished(controller.register_broker(image, REGISTRATION))
    [record] = result.records
    assert isinstance(record, RegisterBrokerRecord)
    assert result.response == record.broker_epoch == 42
    assert record.fenced
    assert record.log_dirs == [b"d" * 16]


def test_a_restarted_broker_leads_again_in_new_epochs(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    created = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=[CreatableTopic("a", 2, 1)])))
    image = replayed(one_broker, created.records)
    same_disk = replace(REGISTRATION, directories=one_broker.cluster.brokers[1].directories)
    registered = finished(controller.register_broker(image, same_disk))
    image = replayed(image, registered.records)
    assert not image.cluster.is_active(1)
    assert {partition.leader for partition in image.topics.by_name["a"].partitions.values()} == {-1}
    unfenced = finished(controller.unfence_broker(image, 1, registered.response))
    assert not unfenced.is_atomic
    image = replayed(image, unfenced.records)
    assert image.cluster.is_active(1)
    partitions = image.topics.by_name["a"].partitions
    assert {(partition.leader, partition.leader_epoch) for partition in partitions.values()} == {(1, 2)}
    assert finished(controller.unfence_broker(image, 1, registered.response)).records == []


def test_fencing_takes_the_leaders_away(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> None:
    created = finished(controller.create_topics(one_broker, CreateTopicsRequest(topics=[CreatableTopic("a", 1, 1)])))
    image = replayed(one_broker, created.records)
    epoch = image.cluster.brokers[1].epoch
    image = replayed(image, finished(controller.fence_broker(image, 1, epoch)).records)
    assert image.cluster.unfenced_brokers() == []
    assert image.topics.by_name["a"].partitions[0].leader == -1
    assert finished(controller.fence_broker(image, 1, epoch)).records == []


def test_an_old_epoch_is_refused(controller: Controller, one_broker: MetadataImage) -> None:
    epoch = one_broker.cluster.brokers[1].epoch
    with pytest.raises(StaleBrokerEpoch):
        finished(controller.unfence_broker(one_broker, 1, epoch - 1))
    with pytest.raises(StaleBrokerEpoch):
        finished(controller.fence_broker(one_broker, 1, epoch + 1))
    with pytest.raises(BrokerIdNotRegistered):
        finished(controller.fence_broker(one_broker, 9, epoch))


def test_a_living_broker_keeps_its_id(controller: Controller, one_broker: MetadataImage) -> None:
    with pytest.raises(DuplicateBrokerRegistration):
        finished(controller.register_broker(one_broker, REGISTRATION, has_live_session=True))
    same = replace(REGISTRATION, incarnation_id=one_broker.cluster.brokers[1].incarnation_id)
    assert finished(controller.register_broker(one_broker, same, has_live_session=True)).records


def test_a_broker_must_support_what_is_finalized(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    old = replace(REGISTRATION, features={"metadata.version": FeatureRange(7, 29)})
    with pytest.raises(UnsupportedVersion, match=r"version 30 of metadata\.version"):
        finished(controller.register_broker(one_broker, old))
    other = replayed(one_broker, [FeatureLevelRecord(name="streams.version", feature_level=2)])
    with pytest.raises(UnsupportedVersion, match=r"streams\.version"):
        finished(controller.register_broker(other, REGISTRATION))


def test_a_broker_must_listen_somewhere(controller: Controller, one_broker: MetadataImage) -> None:
    for endpoints in ((), REGISTRATION.endpoints * 2):
        with pytest.raises(InvalidRegistration):
            finished(controller.register_broker(one_broker, replace(REGISTRATION, endpoints=endpoints)))


def test_a_broker_can_leave_for_good(controller: Controller, three_brokers: MetadataImage, replayed: Replayed) -> None:
    created = finished(controller.create_topics(three_brokers, CreateTopicsRequest(topics=[CreatableTopic("a", 3, 3)])))
    image = replayed(three_brokers, created.records)
    image = replayed(image, finished(controller.unregister_broker(image, 2)).records)
    assert sorted(image.cluster.brokers) == [1, 3]
    assert all(partition.leader != 2 for partition in image.topics.by_name["a"].partitions.values())
    with pytest.raises(BrokerIdNotRegistered):
        finished(controller.unregister_broker(image, 2))


def test_controllers_register_once_per_incarnation(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    result = controller.register_controller(one_broker, REGISTRATION)
    image = replayed(one_broker, result.records)
    assert image.cluster.controllers[1].endpoints == REGISTRATION.endpoints
    assert controller.register_controller(image, REGISTRATION).records == []
    assert controller.register_controller(image, replace(REGISTRATION, incarnation_id=b"x" * 16)).records
    assert controller.register_controller(EMPTY, REGISTRATION).records == []


def test_a_broker_of_another_cluster_is_refused(
    make_controller: Callable[..., Controller], one_broker: MetadataImage
) -> None:
    controller = make_controller(cluster_id="ours")
    with pytest.raises(InconsistentClusterId, match="Expected cluster ID ours, but got cluster ID theirs"):
        finished(controller.register_broker(one_broker, replace(REGISTRATION, cluster_id="theirs")))
    assert finished(controller.register_broker(one_broker, replace(REGISTRATION, cluster_id="ours"))).records
    assert finished(controller.register_broker(one_broker, REGISTRATION)).records


@pytest.mark.parametrize(
    ("directories", "words"),
    [
        ((), "No directories"),
        ((UNASSIGNED_DIRECTORY,), "Reserved"),
        ((b"d" * 16, b"d" * 16), "Duplicate"),
        ((bytes([102]) * 16,), "Broker 2 is already registered with directory"),
    ],
)
def test_a_brokers_directories_are_its_own(
    controller: Controller, three_brokers: MetadataImage, directories: tuple[bytes, ...], words: str
) -> None:
    registration = replace(REGISTRATION, directories=directories)
    with pytest.raises(InvalidRegistration, match=words):
        finished(controller.register_broker(three_brokers, registration))
    old = replace(three_brokers, features=replace(three_brokers.features, levels={"metadata.version": 16}))
    assert finished(controller.register_broker(old, registration)).records


def test_a_broker_must_not_need_what_is_not_finalized(controller: Controller, one_broker: MetadataImage) -> None:
    features = {**REGISTRATION.features, "group.version": FeatureRange(1, 1)}
    with pytest.raises(UnsupportedVersion, match=r"version 0 of group\.version"):
        finished(controller.register_broker(one_broker, replace(REGISTRATION, features=features)))
    with pytest.raises(UnsupportedVersion, match=r"metadata\.version"):
        finished(controller.register_broker(one_broker, replace(REGISTRATION, features={})))


@pytest.mark.parametrize(("claims", "is_clean"), [("its epoch", True), ("none", False), ("another", False), ("", True)])
def test_only_the_epoch_it_was_closed_under_proves_a_clean_end(
    controller: Controller,
    tracking: MetadataImage,
    with_topic: Callable[..., MetadataImage],
    replayed: Replayed,
    claims: str,
    is_clean: bool,
) -> None:
    image = with_topic(
        tracking, {"replicas": [2, 1, 3], "isr": [2], "eligible_leader_replicas": [1]}, min_insync_replicas="2"
    )
    epoch = image.cluster.brokers[1].epoch
    previous = {"its epoch": epoch, "none": -1, "another": epoch - 1, "": None}[claims]
    registered = finished(controller.register_broker(image, replace(REGISTRATION, previous_broker_epoch=previous)))
    after = replayed(image, registered.records)
    assert after.cluster.brokers[1].epoch == registered.response == image.offset + 1
    assert after.topics.by_name["t"].partitions[0].eligible_leader_replicas == ((1,) if is_clean else ())


def test_who_is_not_registered_any_more_has_nothing_to_prove(
    controller: Controller, tracking: MetadataImage, with_topic: Callable[..., MetadataImage], replayed: Replayed
) -> None:
    image = with_topic(
        tracking, {"replicas": [2, 1, 3], "isr": [2], "eligible_leader_replicas": [1]}, min_insync_replicas="2"
    )
    unknown = replace(image, cluster=replace(image.cluster, brokers={2: image.cluster.brokers[2]}))
    registered = finished(controller.register_broker(unknown, replace(REGISTRATION, previous_broker_epoch=-1)))
    after = replayed(unknown, registered.records)
    assert after.topics.by_name["t"].partitions[0].eligible_leader_replicas == ()


def test_the_same_process_amends_what_it_said(
    controller: Controller, one_broker: MetadataImage, replayed: Replayed
) -> None:
    before = one_broker.cluster.brokers[1]
    amended = replace(
        REGISTRATION, incarnation_id=before.incarnation_id, directories=before.directories, rack="another"
    )
    result = finished(controller.register_broker(one_broker, amended))
    assert len(result.records) == 1
    after = replayed(one_broker, result.records).cluster.brokers[1]
    assert (after.epoch, after.is_fenced, after.rack) == (before.epoch, False, "another")
