"""The active controller works while this node leads, and only then."""

from __future__ import annotations

import asyncio
from typing import Any

from asking import in_house
from house import Client, House

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import StaleBrokerEpoch
from millbeck.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from millbeck.wire.messages.broker_registration import BrokerRegistrationRequest, Listener

TWO: dict[str, str] = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller_listener_names": "CTL"}


async def registered(house: House, environment: Environment, *, number: int = 9) -> tuple[Any, int]:
    """Another broker, registered and let in by heartbeats sent by hand."""
    assert house.node is not None
    _, client = await environment.network.connect(Client, host="n1", port=9093)
    request = BrokerRegistrationRequest(
        broker_id=number,
        cluster_id=house.node.cluster_id,
        incarnation_id=bytes(15) + bytes([number]),
        listeners=[Listener("PLAINTEXT", "n9", 9092, 0)],
        log_dirs=[b"\x01" * 15 + bytes([number])],
    )
    features = house.node.broker.image.cluster.brokers[1].features
    from millbeck.wire.messages.broker_registration import Feature

    request.features = [Feature(name, levels.min_level, levels.max_level) for name, levels in features.items()]
    answer = await client.ask(request, 4)  # type: ignore[attr-defined]
    assert answer.error_code == 0, answer
    return client, answer.broker_epoch


def heartbeat(epoch: int, *, number: int = 9) -> BrokerHeartbeatRequest:
    return BrokerHeartbeatRequest(broker_id=number, broker_epoch=epoch, current_metadata_offset=1 << 40)


def is_fenced(house: House, number: int = 9) -> bool:
    assert house.node is not None
    return house.node.broker.image.cluster.brokers[number].is_fenced


def test_a_broker_that_is_not_heard_of_is_fenced_and_this_one_is_not() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        other, epoch = await registered(house, environment)
        assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        for _ in range(5):
            await asyncio.sleep(2)
            assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        assert not is_fenced(house)
        await asyncio.sleep(8.5)
        assert not is_fenced(house)
        await asyncio.sleep(1.5)
        assert is_fenced(house)
        assert not is_fenced(house, 1)

    in_house(scenario, **TWO)


def test_a_node_that_was_held_still_blames_nobody() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        other, epoch = await registered(house, environment)
        await other.ask(heartbeat(epoch), 1)
        house.machine.pause(30)
        await asyncio.sleep(31)
        assert not (await other.ask(heartbeat(epoch), 1)).is_fenced
        assert not is_fenced(house)
        assert not is_fenced(house, 1)

    in_house(scenario, **TWO)


def test_an_older_process_is_told_that_it_is_one() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        other, epoch = await registered(house, environment)
        answer = await other.ask(heartbeat(epoch - 1), 1)
        assert answer.error_code == StaleBrokerEpoch.code

    in_house(scenario, **TWO)


def test_what_is_remembered_goes_with_the_leadership() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        assert house.node.controller_part is not None
        broker, active = house.node.broker, house.node.controller_part.active
        assert broker.controller.is_active
        active._lost(broker.quorum.epoch)
        assert not broker.controller.is_active
        await asyncio.sleep(20)
        assert not is_fenced(house, 1)
        active._gained(broker.quorum.epoch)
        assert broker.controller.is_active

    in_house(scenario, **TWO)
