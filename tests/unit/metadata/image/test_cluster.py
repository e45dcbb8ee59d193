from __future__ import annotations

from dataclasses import replace

from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint
from millbeck.metadata.image.directories import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY

BROKER = BrokerRegistration(
    broker_id=1,
    epoch=11,
    incarnation_id=b"i" * 16,
    endpoints=(
        Endpoint(listener="PLAINTEXT", host="127.0.0.1", port=9092),
        Endpoint(listener="SSL", host="127.0.0.1", port=9094, security_protocol=1),
    ),
    features={"metadata.version": FeatureRange(7, 30)},
    rack="r1",
    is_fenced=False,
    directories=(b"d" * 16,),
    cordoned_directories=(),
)


def test_registrations_survive_the_way_through_a_record() -> None:
    assert BrokerRegistration.from_record(BROKER.to_record()) == BROKER
    bare = BrokerRegistration(broker_id=2, epoch=3, incarnation_id=bytes(16))
    assert BrokerRegistration.from_record(bare.to_record()) == bare
    controller = ControllerRegistration(controller_id=3, incarnation_id=b"c" * 16, endpoints=BROKER.endpoints)
    assert ControllerRegistration.from_record(controller.to_record()) == controller


def test_a_broker_is_active_unless_fenced_or_shutting_down() -> None:
    assert BROKER.is_active
    assert not replace(BROKER, is_fenced=True).is_active
    assert not replace(BROKER, in_controlled_shutdown=True).is_active


def test_endpoints_are_found_by_listener() -> None:
    found = BROKER.endpoint("SSL")
    assert found is not None
    assert found.port == 9094
    assert BROKER.endpoint("CONTROLLER") is None


def test_clients_are_told_of_unfenced_brokers_by_id() -> None:
    brokers = {5: replace(BROKER, broker_id=5), 2: replace(BROKER, broker_id=2), 3: replace(BROKER, is_fenced=True)}
    image = ClusterImage(brokers=brokers)
    assert [broker.broker_id for broker in image.unfenced_brokers()] == [2, 5]
    assert (image.is_active(5), image.is_active(3), image.is_active(9)) == (True, False, False)
    assert image.broker(9) is None
    assert len(list(image.records())) == 3


def test_a_directory_counts_as_online_unless_it_is_known_not_to_be() -> None:
    known = [BROKER.has_online(each) for each in (b"d" * 16, b"x" * 16, LOST_DIRECTORY)]
    assert known == [True, False, False]
    assert BROKER.has_online(UNASSIGNED_DIRECTORY)
    assert BROKER.has_online(MIGRATING_DIRECTORY)
    assert replace(BROKER, directories=()).has_online(b"x" * 16)
    assert not replace(BROKER, directories=()).has_online(LOST_DIRECTORY)


def test_a_broker_with_one_directory_has_no_choice() -> None:
    assert BROKER.default_directory == b"d" * 16
    assert replace(BROKER, directories=(b"d" * 16, b"e" * 16)).default_directory == UNASSIGNED_DIRECTORY
    assert replace(BROKER, directories=()).default_directory == MIGRATING_DIRECTORY


def test_new_replicas_go_where_a_directory_is_open() -> None:
    assert BROKER.takes_new_replicas
    assert not replace(BROKER, in_controlled_shutdown=True).takes_new_replicas
    closed = replace(BROKER, cordoned_directories=(b"d" * 16,))
    assert not closed.takes_new_replicas
    assert replace(closed, directories=(b"d" * 16, b"e" * 16)).takes_new_replicas
    assert replace(BROKER, is_fenced=True, cordoned_directories=None).takes_new_replicas
