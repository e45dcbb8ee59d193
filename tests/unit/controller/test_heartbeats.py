from __future__ import annotations

from dataclasses import replace

import pytest

from millbeck.controller.heartbeats import HeartbeatTracker
from millbeck.metadata.image import BrokerRegistration, MetadataImage

TIMEOUT_MS = 9000


@pytest.fixture
def tracker(three_brokers: MetadataImage) -> HeartbeatTracker:
    tracker = HeartbeatTracker(TIMEOUT_MS)
    tracker.begin(three_brokers, 1000)
    return tracker


def _with(image: MetadataImage, broker: BrokerRegistration) -> MetadataImage:
    return replace(image, cluster=replace(image.cluster, brokers={**image.cluster.brokers, broker.broker_id: broker}))


def test_a_new_controller_gives_everybody_a_fresh_session(
    tracker: HeartbeatTracker, three_brokers: MetadataImage
) -> None:
    assert tracker.find_stale_broker(three_brokers, 1000 + TIMEOUT_MS) is None
    assert tracker.next_expiry_ms(three_brokers, 1000) == 1001 + TIMEOUT_MS
    stale = tracker.find_stale_broker(three_brokers, 1001 + TIMEOUT_MS)
    assert stale is not None
    assert stale.broker_id == 1


def test_who_was_not_heard_of_for_longest_is_stale_first(
    tracker: HeartbeatTracker, three_brokers: MetadataImage
) -> None:
    for broker_id, now_ms in ((1, 2000), (3, 1500), (2, 1600)):
        tracker.heartbeat_received(three_brokers.cluster.brokers[broker_id], metadata_offset=0, now_ms=now_ms)
    assert tracker.next_expiry_ms(three_brokers, 2000) == 1501 + TIMEOUT_MS
    stale = tracker.find_stale_broker(three_brokers, 1501 + TIMEOUT_MS)
    assert stale is not None
    assert stale.broker_id == 3
    fenced = _with(three_brokers, replace(stale, is_fenced=True))
    assert tracker.find_stale_broker(fenced, 1501 + TIMEOUT_MS) is None
    assert tracker.next_expiry_ms(fenced, 2000) == 1601 + TIMEOUT_MS


def test_a_fenced_broker_has_no_session(tracker: HeartbeatTracker, three_brokers: MetadataImage) -> None:
    broker = three_brokers.cluster.brokers[1]
    assert tracker.has_session(broker, 1000 + TIMEOUT_MS)
    assert not tracker.has_session(broker, 1001 + TIMEOUT_MS)
    assert not tracker.has_session(replace(broker, is_fenced=True), 1000)


def test_a_new_process_begins_a_new_session(tracker: HeartbeatTracker, three_brokers: MetadataImage) -> None:
    tracker.begin_controlled_shutdown(three_brokers.cluster.brokers[1], offset=9, now_ms=1000)
    broker = replace(three_brokers.cluster.brokers[1], epoch=50)
    assert not tracker.is_shutting_down(broker, 8000)
    assert not tracker.is_caught_up(broker, 49, 8000)
    tracker.registered(broker, offset=50, now_ms=8000)
    assert not tracker.is_caught_up(broker, 49, 8000)
    assert tracker.is_caught_up(broker, 50, 8000)
    tracker.registered(broker, offset=60, now_ms=9000)
    assert not tracker.is_caught_up(broker, 59, 9000)
    assert tracker.has_session(broker, 9000 + TIMEOUT_MS)
    tracker.forget(1)
    assert tracker.is_caught_up(broker, 50, 9000)


def test_a_shutdown_is_known_when_every_active_broker_has_seen_it(
    tracker: HeartbeatTracker, three_brokers: MetadataImage
) -> None:
    one, two, three = (three_brokers.cluster.brokers[broker_id] for broker_id in (1, 2, 3))
    assert not tracker.can_shut_down(three_brokers, one, 1000)
    tracker.begin_controlled_shutdown(one, offset=80, now_ms=1000)
    tracker.begin_controlled_shutdown(one, offset=90, now_ms=1000)
    assert tracker.is_shutting_down(one, 1000)
    assert not tracker.is_shutting_down(replace(one, is_fenced=True), 1000)
    tracker.heartbeat_received(two, metadata_offset=80, now_ms=1100)
    assert not tracker.can_shut_down(three_brokers, one, 1100)
    assert tracker.can_shut_down(_with(three_brokers, replace(three, is_fenced=True)), one, 1100)
    tracker.begin_controlled_shutdown(three, offset=85, now_ms=1100)
    assert tracker.can_shut_down(three_brokers, one, 1100)
    tracker.end_controlled_shutdown(one.broker_id)
    assert not tracker.is_shutting_down(one, 1100)


def test_the_controllers_own_absence_is_nobodys_fault(tracker: HeartbeatTracker, three_brokers: MetadataImage) -> None:
    tracker.heartbeat_received(three_brokers.cluster.brokers[2], metadata_offset=0, now_ms=61_000)
    tracker.prolong(60_000, 61_000)
    # Who was heard since has lost nothing.
    assert not tracker.has_session(three_brokers.cluster.brokers[2], 61_001 + TIMEOUT_MS)
    assert tracker.find_stale_broker(three_brokers, 61_000 + TIMEOUT_MS) is None
    assert tracker.find_stale_broker(three_brokers, 61_001 + TIMEOUT_MS) is not None


def test_without_brokers_there_is_still_a_next_time(three_brokers: MetadataImage) -> None:
    empty = replace(three_brokers, cluster=replace(three_brokers.cluster, brokers={}))
    tracker = HeartbeatTracker(TIMEOUT_MS)
    assert tracker.find_stale_broker(empty, 5) is None
    assert tracker.next_expiry_ms(empty, 5) == 6 + TIMEOUT_MS


def test_contact_counts_when_a_heartbeat_of_the_registered_epoch_arrives(
    tracker: HeartbeatTracker, three_brokers: MetadataImage
) -> None:
    for broker_id, broker in three_brokers.cluster.brokers.items():
        tracker.touch(broker_id, broker.epoch - (broker_id == 2), 5000)
    tracker.touch(7, 1, 5000)
    stale = tracker.find_stale_broker(three_brokers, 1001 + TIMEOUT_MS)
    assert stale is not None
    assert stale.broker_id == 2
    assert tracker.find_stale_broker(three_brokers, 5000 + TIMEOUT_MS, ignored=(2,)) is None
    assert tracker.find_stale_broker(three_brokers, 5001 + TIMEOUT_MS, ignored=(2,)) is not None
