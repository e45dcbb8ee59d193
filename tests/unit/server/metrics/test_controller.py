"""A controller's metrics move with what they tell of, and back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import UnknownServerError
from millbeck.kernel.histogram import Histogram
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY
from millbeck.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from millbeck.server.metrics.controller import ElectionWatch
from millbeck.server.requests.handlers.brokers import handle_broker_heartbeat, handle_broker_registration
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of, registering
from tests.unit.server.harness.method_patches import needs_sources
from tests.unit.server.harness.scraping import samples

NO_LEADER = -1


def of_controller(harness: BrokerHarness, name: str) -> float:
    return samples(harness.node)[f"kafka_controller_kafkacontroller_{name}"]


def of_elections(harness: BrokerHarness) -> tuple[float, float, float]:
    """All, unclean, from eligible replicas."""
    found, prefix = samples(harness.node), "kafka_controller_controllerstats_"
    return (
        found[prefix + "leaderelectionrateandtimems_count"],
        found[prefix + "uncleanleaderelections_total"],
        found[prefix + "electionfromeligibleleaderreplicas_total"],
    )


async def decide(harness: BrokerHarness, *records: MetadataRecord) -> None:
    assert harness.node is not None
    await harness.node.broker.quorum.submit(lambda image: Result(response=None, records=list(records)))


async def change(harness: BrokerHarness, topic_id: bytes, **fields: Any) -> None:
    if "replicas" in fields:
        fields["directories"] = [bytes(15) + b"\x01"] * len(fields["replicas"])
    await decide(harness, PartitionChangeRecord(partition_id=0, topic_id=topic_id, **fields))


def test_one_node_is_the_active_controller_and_all_is_well() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for name, value in {
            "activecontrollercount": 1,
            "activebrokercount": 1,
            "fencedbrokercount": 0,
            "controlledshutdownbrokercount": 0,
            "globaltopiccount": 0,
            "globalpartitioncount": 0,
            "offlinepartitionscount": 0,
            "preferredreplicaimbalancecount": 0,
            "metadataerrorcount": 0,
            "lastappliedrecordlagms": 0,
            "timedoutbrokerheartbeatcount": 0,
            "newactivecontrollerscount": 1,
            'brokerregistrationstate{broker="1"}': 30,
        }.items():
            assert of_controller(harness, name) == value, name
        assert harness.node is not None
        harness.node.broker.quorum._is_stopped = True
        assert of_controller(harness, "activecontrollercount") == 0

    run_scenario(scenario)


def test_partitions_without_leader_or_with_another_than_the_preferred_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2)
        assert of_controller(harness, "globaltopiccount") == 1
        assert of_controller(harness, "globalpartitioncount") == 2
        await change(harness, topic_id, leader=NO_LEADER)
        assert of_controller(harness, "offlinepartitionscount") == 1
        await change(harness, topic_id, leader=1)
        assert of_controller(harness, "offlinepartitionscount") == 0
        await change(harness, topic_id, replicas=[2, 1])
        assert of_controller(harness, "preferredreplicaimbalancecount") == 1
        await change(harness, topic_id, replicas=[1, 2])
        assert of_controller(harness, "preferredreplicaimbalancecount") == 0

    run_scenario(scenario)


def test_brokers_come_and_are_fenced() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        registered = await ask(harness, handle_broker_registration, registering(harness))
        epoch = registered.broker_epoch
        state = 'brokerregistrationstate{broker="2"}'
        assert (of_controller(harness, "fencedbrokercount"), of_controller(harness, state)) == (1, 10)
        await ask(harness, handle_broker_heartbeat, BrokerHeartbeatRequest(2, epoch, epoch))
        assert (of_controller(harness, "fencedbrokercount"), of_controller(harness, state)) == (0, 30)
        assert of_controller(harness, "activebrokercount") == 2
        leaving = BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=epoch, in_controlled_shutdown=1)
        await decide(harness, leaving)
        assert of_controller(harness, "controlledshutdownbrokercount") == 1
        assert of_controller(harness, state) == 20

    run_scenario(scenario)


def test_elections_are_counted_by_what_the_new_leader_was_before() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        assert of_elections(harness) == (0, 0, 0)
        await change(harness, topic_id, replicas=[1, 2, 3], isr=[1, 2])
        assert of_elections(harness) == (0, 0, 0)
        await change(harness, topic_id, leader=2)
        assert of_elections(harness) == (1, 0, 0)
        await change(harness, topic_id, leader=3, isr=[3])
        assert of_elections(harness) == (2, 1, 0)
        await change(harness, topic_id, leader=NO_LEADER, isr=[], eligible_leader_replicas=[1])
        await change(harness, topic_id, leader=1, isr=[1], eligible_leader_replicas=[])
        assert of_elections(harness) == (3, 1, 1)

    run_scenario(scenario)


def test_elections_from_before_the_process_are_not_its_news() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        watch = ElectionWatch(environment.clock, times := Histogram())
        topic_id = bytes(range(16))
        registration = PartitionRecord(
            partition_id=0, topic_id=topic_id, replicas=[1, 2], isr=[1], leader=1, directories=[bytes(16)] * 2
        )
        image, _ = advance(
            EMPTY, [TopicRecord(name="t", topic_id=topic_id), registration], offset=1, epoch=1, timestamp_ms=0
        )
        unclean = [PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=2, isr=[2])]
        now_ms = environment.clock.wall_ms()
        for timestamp_ms, expected in ((now_ms - 1, 0), (now_ms, 1)):
            after, delta = advance(image, unclean, offset=2, epoch=1, timestamp_ms=timestamp_ms)
            await watch.published(after, delta)
            assert (watch.unclean, times.count) == (expected, expected)

    run_scenario(scenario)


def test_what_is_committed_and_not_applied_is_late_until_it_is() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        quorum = harness.node.broker.quorum
        await create(client)
        committed = of_controller(harness, "lastcommittedrecordoffset")
        assert of_controller(harness, "lastappliedrecordoffset") == committed == quorum.high_watermark - 1
        assert of_controller(harness, "lastappliedrecordtimestamp") == quorum.image.timestamp_ms
        newest = quorum.image
        quorum.image = EMPTY
        assert of_controller(harness, "lastappliedrecordlagms") == 0
        await asyncio.sleep(5)
        assert of_controller(harness, "lastappliedrecordlagms") >= 5000
        quorum.image = newest
        assert of_controller(harness, "lastappliedrecordlagms") == 0

    run_scenario(scenario)


def test_decisions_and_contradictions_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        before = of_controller(harness, "eventqueueoperationsstartedcount")
        await create(client)
        found = samples(harness.node)
        started = found["kafka_controller_kafkacontroller_eventqueueoperationsstartedcount"]
        assert started > before
        # What was decided while the node started is counted, too.
        assert found["kafka_controller_controllereventmanager_eventqueueprocessingtimems_count"] == started
        with pytest.raises(UnknownServerError):
            await change(harness, bytes(16), leader=1)
        assert of_controller(harness, "metadataerrorcount") == 1

    run_scenario(scenario)


def test_a_loop_that_is_late_shows_in_the_queue_time() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        name = 'kafka_controller_controllereventmanager_eventqueuetimems{quantile="0.99"}'
        await asyncio.sleep(120)
        assert samples(harness.node)[name] < 10
        for histogram in harness.node.watch.lateness_ms * 20:
            histogram.record(2000)
        assert samples(harness.node)[name] > 1900
        for _ in range(4):
            await asyncio.sleep(30)
            last = samples(harness.node)[name]
        assert last < 10

    run_scenario(scenario)


@needs_sources
def test_a_heartbeat_that_is_answered_too_late_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        broker = broker_of(harness)
        registered = await ask(harness, handle_broker_registration, registering(harness))
        beat = BrokerHeartbeatRequest(2, registered.broker_epoch, registered.broker_epoch)
        await ask(harness, handle_broker_heartbeat, beat)
        assert of_controller(harness, "timedoutbrokerheartbeatcount") == 0
        committed = broker.quorum._wait_committed

        async def slowly(end_offset: int) -> None:
            await asyncio.sleep(10)
            await committed(end_offset)

        monkeypatch.setattr(broker.quorum, "_wait_committed", slowly)
        await ask(harness, handle_broker_heartbeat, beat)
        assert of_controller(harness, "timedoutbrokerheartbeatcount") == 0, "nothing changes: it waits for no commit"
        beat.want_fence = True
        await ask(harness, handle_broker_heartbeat, beat)
        assert of_controller(harness, "timedoutbrokerheartbeatcount") == 1

    run_scenario(scenario)
