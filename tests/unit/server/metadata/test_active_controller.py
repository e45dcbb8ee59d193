"""The active controller works while this node leads, and only then."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import StaleBrokerEpoch
from millbeck.metadata.records import RemoveTopicRecord
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest, BrokerRegistrationRequest, Listener
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}


async def registered(harness: BrokerHarness, environment: Environment, *, number: int = 9) -> tuple[Any, int]:
    """Another broker, registered and let in by heartbeats sent by hand."""
    assert harness.node is not None
    _, client = await environment.network.connect(Client, host="n1", port=9093)
    request = BrokerRegistrationRequest(
        broker_id=number,
        cluster_id=harness.node.cluster_id,
        incarnation_id=bytes(15) + bytes([number]),
        listeners=[Listener("PLAINTEXT", "n9", 9092, 0)],
        log_dirs=[b"\x01" * 15 + bytes([number])],
    )
    features = harness.node.broker.image.cluster.brokers[1].features
    from millbeck.wire.messages.nodes import Feature

    request.features = [Feature(name, levels.min_level, levels.max_level) for name, levels in features.items()]
    answer = await client.ask(request, 4)  # type: ignore[attr-defined]
    assert answer.error_code == 0, answer
    return client, answer.broker_epoch


def heartbeat(epoch: int, *, number: int = 9) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=number, broker_epoch=epoch, current_metadata_offset=1 << 40)


def is_fenced(harness: BrokerHarness, number: int = 9) -> bool:
    assert harness.node is not None
    return harness.node.broker.image.cluster.brokers[number].is_fenced


def test_a_broker_that_is_not_heard_of_is_fenced_and_this_one_is_not() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        other, epoch = await registered(harness, environment)
        assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        for _ in range(5):
            await asyncio.sleep(2)
            assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        assert not is_fenced(harness)
        await asyncio.sleep(8.5)
        assert not is_fenced(harness)
        await asyncio.sleep(1.5)
        assert is_fenced(harness)
        assert not is_fenced(harness, 1)

    run_scenario(scenario, **TWO)


def test_a_node_that_was_held_still_blames_nobody() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        other, epoch = await registered(harness, environment)
        await other.ask(heartbeat(epoch), 1)
        harness.machine.pause(30)
        await asyncio.sleep(31)
        assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        assert not is_fenced(harness)
        assert not is_fenced(harness, 1)

    run_scenario(scenario, **TWO)


@pytest.mark.parametrize("is_decided", [False, True])
def test_a_busy_controller_does_not_fence_who_is_alive(is_decided: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when a heartbeat is answered without a decision, nor when it waits for its turn."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        clients = [await registered(harness, environment, number=number) for number in (8, 9)]
        for number, (other, epoch) in zip((8, 9), clients, strict=True):
            assert not (await other.ask(heartbeat(epoch, number=number), 1)).is_fenced
        if is_decided:
            monkeypatch.setattr(BrokerLifecycle, "reply_to_unchanged", lambda *_: None)
        fenced: list[int] = []
        original = BrokerLifecycle.fence_stale

        def fence(self: BrokerLifecycle, image: Any, broker: Any, now_ms: int) -> Any:
            fenced.append(broker.broker_id)
            return original(self, image, broker, now_ms)

        monkeypatch.setattr(BrokerLifecycle, "fence_stale", fence)
        async with harness.node.broker.quorum.deciding:
            await asyncio.sleep(5)
            other, epoch = clients[0]
            asked = asyncio.create_task(other.ask(heartbeat(epoch, number=8), 1))
            await asyncio.sleep(5)
            assert asked.done() != is_decided
        await asyncio.sleep(1)
        assert not (await asked).is_fenced
        assert fenced == [9]
        assert is_fenced(harness, 9)

    run_scenario(scenario, **TWO)


def test_a_heartbeat_that_changes_nothing_waits_for_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        other, epoch = await registered(harness, environment)
        assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        is_committed = asyncio.Event()

        async def wait(end_offset: int) -> None:
            await is_committed.wait()

        monkeypatch.setattr(harness.node.broker.quorum, "_wait_committed", wait)
        for _ in range(10):
            async with asyncio.timeout(0.5):
                assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
            await asyncio.sleep(2)
        is_committed.set()
        await asyncio.sleep(1)
        assert not is_fenced(harness)

    run_scenario(scenario, **TWO)


def test_an_older_process_is_told_that_it_is_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        other, epoch = await registered(harness, environment)
        answer = await other.ask(heartbeat(epoch - 1), 1)
        assert answer.error_code == StaleBrokerEpoch.code

    run_scenario(scenario, **TWO)


def test_what_is_remembered_goes_with_the_leadership() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        assert harness.node.controller_part is not None
        broker, active = harness.node.broker, harness.node.controller_part.active
        assert broker.controller.is_active
        active._lost(broker.quorum.epoch)
        assert not broker.controller.is_active
        await asyncio.sleep(20)
        assert not is_fenced(harness, 1)
        active._gained(broker.quorum.epoch)
        assert broker.controller.is_active

    run_scenario(scenario, **TWO)


@pytest.mark.parametrize("is_decided", [False, True])
def test_one_broker_that_can_not_be_fenced_does_not_keep_the_others(
    is_decided: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither when the decision fails, nor when what was decided contradicts the image."""
    original = BrokerLifecycle.fence_stale

    def fence(self: BrokerLifecycle, image: Any, broker: Any, now_ms: int) -> Any:
        if broker.broker_id != 8:
            return original(self, image, broker, now_ms)
        if not is_decided:
            raise ValueError(broker.broker_id)
        return Result(response=8, records=[RemoveTopicRecord(topic_id=b"?" * 16)], is_atomic=False)

    monkeypatch.setattr(BrokerLifecycle, "fence_stale", fence)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for number in (8, 9):
            other, epoch = await registered(harness, environment, number=number)
            assert not (await other.ask(heartbeat(epoch, number=number), 1)).is_fenced
        await asyncio.sleep(11)
        assert not is_fenced(harness, 8)
        assert is_fenced(harness, 9)
        assert not is_fenced(harness, 1)
        assert harness.node is not None
        assert harness.node.controller_part is not None
        assert 1 <= harness.node.broker.controller.failure_count < 10
        assert harness.node.broker.unexpected_errors == harness.node.broker.controller.failure_count
        harness.node.broker.unexpected_errors = 0

    run_scenario(scenario, **TWO)
