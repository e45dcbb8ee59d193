from __future__ import annotations

from dataclasses import replace

from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration, Endpoint

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
