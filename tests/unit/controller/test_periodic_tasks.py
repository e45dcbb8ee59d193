from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller, periodic_tasks
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.result import finished
from millbeck.kernel.errors import NotController, UnknownServerError
from millbeck.metadata.image import BrokerRegistration, MetadataImage
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]


class Driver:
    """Comes when it is told to, in a time of its own."""

    def __init__(self, controller: Controller, image: MetadataImage, replayed: Replayed) -> None:
        self.controller, self.image, self._replayed = controller, image, replayed
        self.now_ms = 1000
        controller.activate(image, now_ms=self.now_ms)
        self.work()

    def work(self) -> int:
        """Everything that is due, in so many steps."""
        steps = 0
        while True:
            result = finished(self.controller.periodic_task(self.image, now_ms=self.now_ms))
            self.image = self._replayed(self.image, result.records)
            if not result.response:
                return steps
            steps += 1

    def come_back(self, *, late_ms: int = 0) -> None:
        self.now_ms = self.controller.next_task_ms(self.image, now_ms=self.now_ms) + late_ms
        self.work()

    def run_until(self, now_ms: int) -> None:
        while (next_ms := self.controller.next_task_ms(self.image, now_ms=self.now_ms)) <= now_ms:
            self.now_ms = next_ms
            self.work()
        self.now_ms = now_ms

    def beat(self, *broker_ids: int) -> None:
        for broker_id in broker_ids:
            epoch = self.image.cluster.brokers[broker_id].epoch
            request = BrokerHeartbeatRequest(broker_id, epoch, self.image.offset)
            result = finished(self.controller.broker_heartbeat(self.image, request, now_ms=self.now_ms))
            self.image = self._replayed(self.image, result.records)

    @property
    def active(self) -> list[int]:
        return [broker.broker_id for broker in self.image.cluster.unfenced_brokers()]


@pytest.fixture
def driver(
    make_controller: Callable[..., Controller], three_brokers: MetadataImage, with_topic: WithTopic, replayed: Replayed
) -> Driver:
    image = with_topic(three_brokers, {"replicas": [1, 2, 3], "leader": 2}, {"replicas": [3, 1, 2]})
    return Driver(make_controller(session_timeout_ms=9000, rebalance_interval_ms=60_000), image, replayed)


def test_silent_brokers_are_fenced_one_after_another(driver: Driver) -> None:
    driver.run_until(5000)
    driver.beat(2)
    driver.run_until(10_000)
    assert driver.active == [1, 2, 3]
    driver.run_until(10_001)
    assert driver.active == [2]
    partitions = driver.image.topics.by_name["t"].partitions
    assert [(each.leader, each.isr) for each in partitions.values()] == [(2, (2,)), (2, (2,))]
    driver.run_until(14_000)
    assert driver.active == [2]
    driver.run_until(14_001)
    assert driver.active == []


def test_who_is_heard_from_stays(driver: Driver) -> None:
    for _ in range(20):
        driver.now_ms += 3000
        driver.beat(1, 2, 3)
        driver.work()
    assert driver.active == [1, 2, 3]


def test_it_comes_back_soon_enough_for_sessions_that_begin_meanwhile(driver: Driver) -> None:
    driver.run_until(20_000)
    assert driver.active == []
    waits_until = driver.controller.next_task_ms(driver.image, now_ms=driver.now_ms)
    driver.now_ms += 10
    driver.beat(1)
    assert waits_until <= driver.now_ms + 9001
    driver.run_until(29_011)
    assert driver.active == []


@pytest.mark.parametrize("late_ms", [3000, 8000, 60_000])
def test_a_controller_that_was_not_running_blames_nobody(driver: Driver, late_ms: int) -> None:
    driver.come_back(late_ms=late_ms)
    assert driver.active == [1, 2, 3]
    driver.run_until(10_000 + late_ms)
    assert driver.active == [1, 2, 3]
    # Who is really gone is noticed after its session and the time the controller missed.
    driver.run_until(10_001 + late_ms)
    assert driver.active == []


def test_a_task_that_waits_prolongs_no_session(driver: Driver) -> None:
    driver.run_until(4000)
    driver.beat(1)
    driver.now_ms = driver.controller.next_task_ms(driver.image, now_ms=driver.now_ms)
    driver.controller.task_begun(now_ms=driver.now_ms)
    driver.now_ms = 12_000
    driver.work()
    assert driver.active == [1]


def test_a_little_late_is_late_enough(driver: Driver) -> None:
    driver.come_back(late_ms=2000)
    driver.run_until(10_001)
    assert driver.active == []


def test_leadership_goes_back_to_the_preferred(driver: Driver) -> None:
    for now_ms in range(4000, 64_000, 3000):
        driver.now_ms = now_ms
        driver.beat(1, 2, 3)
        driver.work()
        leaders = [each.leader for each in driver.image.topics.by_name["t"].partitions.values()]
        assert leaders == ([1, 3] if now_ms >= 61_000 else [2, 3])
    assert [each.leader for each in driver.image.topics.by_name["t"].partitions.values()] == [1, 3]


def test_many_leaders_go_back_some_at_a_time(
    driver: Driver, with_topic: WithTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millbeck.controller.elections.ELECTION_COUNT_MAX", 1)
    driver.image = with_topic(driver.image, {"replicas": [1, 2], "leader": 2}, name="u", topic_id=b"u" * 16)
    driver.now_ms = 61_000
    driver.beat(1, 2, 3)
    assert driver.work() == 3
    leaders = [topic.partitions[0].leader for topic in driver.image.topics.by_name.values()]
    assert leaders == [1, 1]


def test_but_not_where_that_is_switched_off(
    make_controller: Callable[..., Controller], driver: Driver, replayed: Replayed
) -> None:
    controller = make_controller(rebalance_interval_ms=1000, rebalances_leaders=False)
    quiet = Driver(controller, driver.image, replayed)
    quiet.now_ms += 2000
    quiet.beat(1, 2, 3)
    quiet.work()
    assert quiet.image.topics.by_name["t"].partitions[0].leader == 2


def test_unclean_elections_are_looked_for(
    make_controller: Callable[..., Controller], driver: Driver, with_topic: WithTopic, replayed: Replayed
) -> None:
    lost = {"replicas": [3, 1], "leader": -1, "isr": [3], "directories": [b"gone" * 4, bytes(16)]}
    image = with_topic(driver.image, lost, name="risky", topic_id=b"r" * 16, unclean_leader_election_enable="true")
    risky = Driver(make_controller(unclean_election_interval_ms=2000), image, replayed)
    assert risky.image.topics.by_name["risky"].partitions[0].leader == -1
    risky.run_until(3000)
    assert risky.image.topics.by_name["risky"].partitions[0].leader == 1


def test_the_first_thing_is_what_features_rely_on(
    make_controller: Callable[..., Controller], tracking: MetadataImage, replayed: Replayed
) -> None:
    controller = make_controller()
    controller.activate(tracking, now_ms=0)
    assert controller.next_task_ms(tracking, now_ms=5) == 5
    driver = Driver(controller, tracking, replayed)
    assert driver.image.configs.of_all_brokers() == {"min.insync.replicas": "1"}


def test_only_the_active_controller_has_duties(driver: Driver) -> None:
    assert driver.controller.is_active
    driver.controller.deactivate()
    assert not driver.controller.is_active
    with pytest.raises(NotController):
        driver.work()
    with pytest.raises(NotController):
        driver.controller.next_task_ms(driver.image, now_ms=0)


def test_one_broker_that_can_not_be_fenced_does_not_keep_the_others(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = BrokerLifecycle.fence_stale

    def fence(self: BrokerLifecycle, image: MetadataImage, broker: BrokerRegistration, now_ms: int) -> Any:
        if broker.broker_id == 1:
            raise ValueError(broker.broker_id)
        return original(self, image, broker, now_ms)

    monkeypatch.setattr(BrokerLifecycle, "fence_stale", fence)
    driver.run_until(10_001)
    assert driver.active == [1]
    failures = driver.controller.failure_count
    assert failures == 1
    steps = 0
    while driver.controller.next_task_ms(driver.image, now_ms=driver.now_ms) <= 20_000:
        driver.come_back()
        steps += 1
    assert steps < 20, "it is tried again after a while, not at once"
    assert driver.controller.failure_count > failures
    monkeypatch.undo()
    driver.run_until(30_000)
    assert driver.active == []


def test_what_can_not_be_written_is_left_alone_and_the_rest_is_done(driver: Driver) -> None:
    driver.run_until(10_000)
    driver.now_ms = driver.controller.next_task_ms(driver.image, now_ms=driver.now_ms)
    first = finished(driver.controller.periodic_task(driver.image, now_ms=driver.now_ms))
    assert first.response
    driver.controller.task_failed(UnknownServerError("contradicts the image"), now_ms=driver.now_ms)
    driver.work()
    assert driver.active == [1], "the two others are fenced"
    driver.run_until(16_000)
    assert driver.active == []


@pytest.mark.parametrize("name", ["balance_leaders", "elect_unclean_leaders", "records_for_tracking"])
def test_one_task_that_fails_does_not_stop_the_others(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError(name)

    monkeypatch.setattr(periodic_tasks, name, fail)
    driver.run_until(5000)
    for now_ms in range(7000, 400_000, 3000):
        driver.run_until(now_ms)
        driver.beat(1, 2)
    assert driver.active == [1, 2]
    leaders = [each.leader for each in driver.image.topics.by_name["t"].partitions.values()]
    assert leaders == [2, 1] if name == "balance_leaders" else [1, 1]
