"""A broker from its registration to its end, by heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.controller import Controller, ControllerOptions, NodeRegistration, OptionRules, broker_lifecycle
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.result import finished
from millbeck.kernel.errors import BrokerIdNotRegistered, DuplicateBrokerRegistration, NotController, StaleBrokerEpoch
from millbeck.metadata.image import Endpoint, MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest, BrokerHeartbeatResponse

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
WithTopic = Callable[..., MetadataImage]
NOW_MS = 1000


class Cluster:
    """An image and the controller that is active on it."""

    def __init__(self, image: MetadataImage, rules: OptionRules, replayed: Replayed) -> None:
        self.image = image
        self.brokers = BrokerLifecycle(ControllerOptions(session_timeout_ms=9000), rules)
        self.brokers.activate(image, NOW_MS)
        self._replayed = replayed

    def beat(
        self, broker_id: int, *, offset: int | None = None, now_ms: int = NOW_MS, **wants: Any
    ) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=broker_id,
            broker_epoch=self.image.cluster.brokers[broker_id].epoch,
            current_metadata_offset=self.image.offset if offset is None else offset,
            **wants,
        )
        result = finished(self.brokers.heartbeat(self.image, request, now_ms))
        self.image = self._replayed(self.image, result.records)
        return result.response

    def unchanged(
        self, broker_id: int, *, committed: MetadataImage | None = None, **wants: Any
    ) -> BrokerHeartbeatResponse | None:
        broker = self.image.cluster.brokers[broker_id]
        request = BrokerHeartbeatRequest(broker_id, broker.epoch, self.image.offset, **wants)
        return self.brokers.reply_to_unchanged(committed or self.image, self.image, request, NOW_MS)

    def restart(self, broker_id: int, **fields: Any) -> int:
        broker = self.image.cluster.brokers[broker_id]
        registration = NodeRegistration(
            node_id=broker_id,
            incarnation_id=fields.pop("incarnation_id", b"another process!"),
            endpoints=(Endpoint(listener="PLAINTEXT", host="h", port=9092),),
            directories=broker.directories,
            **fields,
        )
        result = finished(self.brokers.register(self.image, registration, now_ms=NOW_MS, has_live_session=False))
        self.image = self._replayed(self.image, result.records)
        return result.response.epoch

    def leader(self, index: int = 0) -> int:
        return self.image.topics.by_name["t"].partitions[index].leader


@pytest.fixture
def cluster(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Callable[[], OptionRules], replayed: Replayed
) -> Cluster:
    return Cluster(with_topic(three_brokers, {"replicas": [1, 2]}, {"replicas": [1]}), make_rules(), replayed)


def states(response: BrokerHeartbeatResponse) -> tuple[bool, bool, bool]:
    return response.is_caught_up, response.is_fenced, response.should_shut_down


def test_a_broker_is_unfenced_when_it_has_seen_its_registration(cluster: Cluster) -> None:
    cluster.beat(1, want_fence=True)
    epoch = cluster.restart(1)
    assert cluster.image.cluster.brokers[1].is_fenced
    assert states(cluster.beat(1, offset=epoch - 1)) == (False, True, False)
    assert states(cluster.beat(1, offset=epoch, want_fence=True)) == (True, True, False)
    assert states(cluster.beat(1, offset=epoch)) == (True, False, False)
    assert cluster.image.cluster.is_active(1)
    assert (cluster.leader(0), cluster.leader(1)) == (2, 1)


def test_a_broker_may_ask_to_be_fenced(cluster: Cluster) -> None:
    assert states(cluster.beat(1, want_fence=True)) == (True, True, False)
    assert (cluster.leader(0), cluster.leader(1)) == (2, -1)


def test_a_shutdown_waits_until_everybody_knows_the_new_leaders(cluster: Cluster) -> None:
    cluster.beat(2), cluster.beat(3)
    assert states(cluster.beat(1, want_shut_down=True)) == (True, False, False)
    assert cluster.image.cluster.brokers[1].in_controlled_shutdown
    assert (cluster.leader(0), cluster.leader(1)) == (2, -1)
    offset = cluster.image.offset
    assert states(cluster.beat(1, want_shut_down=True)) == (True, False, False)
    cluster.beat(2, offset=offset), cluster.beat(3, offset=offset - 1)
    assert states(cluster.beat(1, want_shut_down=True)) == (True, False, False)
    cluster.beat(3, offset=offset)
    assert states(cluster.beat(1, want_shut_down=True)) == (True, True, True)
    assert cluster.image.cluster.brokers[1].is_fenced


def test_who_leads_nothing_may_end_at_once(cluster: Cluster) -> None:
    assert states(cluster.beat(3, want_shut_down=True)) == (True, True, True)
    assert states(cluster.beat(3, want_shut_down=True)) == (True, True, True)


def test_who_wants_to_end_and_be_fenced_waits_for_nothing(cluster: Cluster) -> None:
    assert states(cluster.beat(1, want_shut_down=True, want_fence=True)) == (True, True, True)


def test_a_new_controller_begins_a_shutdown_again(cluster: Cluster) -> None:
    cluster.beat(1, want_shut_down=True)
    cluster.brokers.activate(cluster.image, NOW_MS)
    assert states(cluster.beat(1, want_shut_down=True)) == (True, True, True)


def test_another_process_gets_the_id_when_the_first_is_silent_or_fenced(cluster: Cluster) -> None:
    with pytest.raises(DuplicateBrokerRegistration):
        cluster.restart(1)
    before = cluster.image.cluster.brokers[1]
    assert cluster.restart(1, incarnation_id=before.incarnation_id) == before.epoch
    assert cluster.image.cluster.is_active(1)
    cluster.beat(1, want_fence=True)
    assert cluster.restart(1) > before.epoch


def test_a_silent_broker_is_fenced_when_its_session_ends(cluster: Cluster) -> None:
    tracker = cluster.brokers.tracker
    assert tracker is not None
    assert tracker.find_stale_broker(cluster.image, NOW_MS + 9000) is None
    cluster.beat(2, now_ms=NOW_MS + 1)
    stale = tracker.find_stale_broker(cluster.image, NOW_MS + 9001)
    assert stale is not None
    other = tracker.find_stale_broker(cluster.image, NOW_MS + 9001, ignored=(1,))
    assert (stale.broker_id, other and other.broker_id) == (1, 3)
    result = finished(cluster.brokers.fence_stale(cluster.image, stale, NOW_MS + 9001))
    assert result.response == 1
    assert result.records


def test_who_is_heard_of_while_it_is_fenced_leads_again_where_nobody_else_can(
    tracking: MetadataImage,
    with_topic: WithTopic,
    make_rules: Callable[[], OptionRules],
    replayed: Replayed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_lifecycle, "FENCED_AT_ONCE_MAX", 2)
    cluster = Cluster(with_topic(tracking, *[{"replicas": [1]}] * 5), make_rules(), replayed)
    result = finished(cluster.brokers.fence_stale(cluster.image, cluster.image.cluster.brokers[1], NOW_MS + 9001))
    cluster.image = replayed(cluster.image, result.records)
    assert [cluster.leader(index) for index in range(5)] == [-1, -1, 1, 1, 1]
    assert not cluster.image.cluster.brokers[1].is_fenced
    assert states(cluster.beat(1, now_ms=NOW_MS + 9500)) == (True, False, False)
    assert [cluster.leader(index) for index in range(5)] == [1] * 5
    offset = cluster.image.offset
    cluster.beat(1, now_ms=NOW_MS + 11_500)
    assert cluster.image.offset == offset, "asked for once"


def test_who_is_heard_of_while_its_fencing_is_decided_keeps_what_it_has(
    three_brokers: MetadataImage, with_topic: WithTopic, make_rules: Callable[[], OptionRules], replayed: Replayed
) -> None:
    cluster = Cluster(with_topic(three_brokers, *[{"replicas": [1, 2]}] * 250), make_rules(), replayed)
    broker = cluster.image.cluster.brokers[1]
    request = BrokerHeartbeatRequest(1, broker.epoch, cluster.image.offset)
    for is_heard in (True, False):
        steps = cluster.brokers.fence_stale(cluster.image, broker, NOW_MS + 9001)
        next(steps)
        if is_heard:
            cluster.brokers.heartbeat_arrived(request, NOW_MS + 9002)
        assert (finished(steps).records == []) == is_heard


def test_a_new_controller_ends_the_fencing_that_another_has_begun(
    tracking: MetadataImage,
    with_topic: WithTopic,
    make_rules: Callable[[], OptionRules],
    replayed: Replayed,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(broker_lifecycle, "FENCED_AT_ONCE_MAX", 2)
    before = Cluster(with_topic(tracking, *[{"replicas": [1]}] * 5), make_rules(), replayed)
    result = finished(before.brokers.fence_stale(before.image, before.image.cluster.brokers[1], NOW_MS + 9001))
    after = Cluster(replayed(before.image, result.records), make_rules(), replayed)
    assert [after.leader(index) for index in range(5)] == [-1, -1, 1, 1, 1]
    after.beat(2)
    assert [after.leader(index) for index in range(5)] == [-1, -1, 1, 1, 1]
    assert after.unchanged(1) is None, "partitions wait for a leader"
    assert states(after.beat(1)) == (True, False, False)
    assert [after.leader(index) for index in range(5)] == [1] * 5
    offset = after.image.offset
    assert after.unchanged(1) is not None
    after.beat(1)
    assert after.image.offset == offset, "asked for once"


def test_a_heartbeat_that_changes_nothing_needs_no_decision(cluster: Cluster) -> None:
    directory = cluster.image.cluster.brokers[1].directories[0]
    cluster.beat(1)
    wants: dict[str, Any]
    for wants in ({}, {"offline_log_dirs": [b"unknown directory"[:16]]}, {"cordoned_log_dirs": []}):
        reply = cluster.unchanged(1, **wants)
        assert reply is not None
        assert states(reply) == (True, False, False)
    for wants in (
        {"want_fence": True},
        {"want_shut_down": True},
        {"offline_log_dirs": [directory]},
        {"cordoned_log_dirs": [directory]},
    ):
        assert cluster.unchanged(1, **wants) is None, wants
    committed = cluster.image
    cluster.beat(1, want_fence=True)
    assert cluster.unchanged(1, committed=committed, want_fence=True) is None, "it is not committed yet"
    reply = cluster.unchanged(1, want_fence=True)
    assert reply is not None
    assert states(reply) == (True, True, False)
    assert cluster.unchanged(1) is None, "it is to be unfenced"
    cluster.beat(1)
    cluster.beat(1, want_shut_down=True)
    assert cluster.unchanged(1) is None, "its shutdown has begun"


@pytest.mark.parametrize(("broker_id", "is_older"), [(1, True), (7, False)])
def test_whoever_is_not_registered_is_refused_by_a_decision(cluster: Cluster, broker_id: int, is_older: bool) -> None:
    request = BrokerHeartbeatRequest(broker_id, cluster.image.cluster.brokers[1].epoch - is_older, 1 << 40)
    assert cluster.brokers.reply_to_unchanged(cluster.image, cluster.image, request, NOW_MS) is None


def test_a_shutdown_that_expired_is_not_gone_on_with(cluster: Cluster, replayed: Replayed) -> None:
    cluster.beat(1, want_shut_down=True)
    result = finished(cluster.brokers.fence_stale(cluster.image, cluster.image.cluster.brokers[1], NOW_MS + 9001))
    cluster.image = replayed(cluster.image, result.records)
    assert cluster.image.cluster.brokers[1].is_fenced
    for broker_id in (2, 3, 1):
        cluster.beat(broker_id, now_ms=NOW_MS + 9002)
    assert states(cluster.beat(1, now_ms=NOW_MS + 9002)) == (True, False, False)


def test_a_stale_process_is_told_so(cluster: Cluster) -> None:
    epoch = cluster.image.cluster.brokers[1].epoch
    for broker_id, claimed in ((1, epoch - 1), (7, epoch)):
        with pytest.raises(StaleBrokerEpoch):
            finished(cluster.brokers.heartbeat(cluster.image, BrokerHeartbeatRequest(broker_id, claimed), NOW_MS))
    with pytest.raises(BrokerIdNotRegistered):
        finished(cluster.brokers.fence(cluster.image, 7, epoch))


def test_only_the_active_controller_hears_heartbeats(cluster: Cluster) -> None:
    cluster.brokers.deactivate()
    with pytest.raises(NotController):
        cluster.beat(1)


def test_a_lost_directory_is_dealt_with_before_anything_else(cluster: Cluster, replayed: Replayed) -> None:
    directory = cluster.image.cluster.brokers[1].directories[0]
    broker = replace(cluster.image.cluster.brokers[1], directories=(directory, b"another disk----"))
    cluster.image = replace(
        cluster.image, cluster=replace(cluster.image.cluster, brokers={**cluster.image.cluster.brokers, 1: broker})
    )
    epochs = [each.leader_epoch for each in cluster.image.topics.by_name["t"].partitions.values()]
    cluster.beat(1, want_shut_down=True, offline_log_dirs=[directory])
    partitions = cluster.image.topics.by_name["t"].partitions
    # Both the shutdown and the lost directory take leadership away; that is one change, not two.
    assert [each.leader_epoch for each in partitions.values()] == [epoch + 1 for epoch in epochs]
    assert cluster.image.cluster.brokers[1].directories == (b"another disk----",)


def test_who_is_let_in_does_not_lead_what_it_has_lost(cluster: Cluster) -> None:
    directory = cluster.image.cluster.brokers[1].directories[0]
    broker = replace(cluster.image.cluster.brokers[1], directories=(directory, b"another disk----"))
    cluster.image = replace(
        cluster.image, cluster=replace(cluster.image.cluster, brokers={**cluster.image.cluster.brokers, 1: broker})
    )
    cluster.beat(1, want_fence=True)
    epoch = cluster.image.topics.by_name["t"].partitions[1].leader_epoch
    assert states(cluster.beat(1, offline_log_dirs=[directory])) == (True, False, False)
    alone = cluster.image.topics.by_name["t"].partitions[1]
    assert (alone.leader, alone.leader_epoch) == (-1, epoch)


def test_directories_closed_to_new_partitions_are_remembered(cluster: Cluster) -> None:
    directory = cluster.image.cluster.brokers[1].directories[0]
    cluster.beat(1, cordoned_log_dirs=[directory])
    assert cluster.image.cluster.brokers[1].cordoned_directories == (directory,)
    offset = cluster.image.offset
    cluster.beat(1, cordoned_log_dirs=[directory])
    assert cluster.image.offset == offset


def test_a_broker_that_leaves_for_good_is_forgotten(cluster: Cluster, replayed: Replayed) -> None:
    records = finished(cluster.brokers.unregister(cluster.image, 1)).records
    assert replayed(cluster.image, records).cluster.brokers.keys() == {2, 3}


def test_fencing_by_hand_happens_once(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> None:
    epoch = one_broker.cluster.brokers[1].epoch
    records = finished(controller.fence_broker(one_broker, 1, epoch)).records
    assert [type(record) for record in records] == [BrokerRegistrationChangeRecord]
    assert finished(controller.fence_broker(replayed(one_broker, records), 1, epoch)).records == []
