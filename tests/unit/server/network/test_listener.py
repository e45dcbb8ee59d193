"""A listener binds where it is told, admits as many as it may, and closes those that outstay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.metrics import Registry
from millbeck.security.hosts import Networks
from millbeck.server.config.addresses import ListenerAddress
from millbeck.server.network.call import Call
from millbeck.server.network.connection import Connection
from millbeck.server.network.listener import ConnectionLimits, Listener, ListenerContext
from millbeck.server.network.receive import SharedBuffer
from millbeck.server.network.request_metrics import RequestMetrics
from millbeck.simulation import World
from tests.unit.server.harness.method_patches import needs_sources


class Handler:
    statistics = RequestMetrics(Registry()).statistics(0, "Produce")


class Echo:
    """Answers every frame with itself, or keeps it."""

    def __init__(self) -> None:
        self.answers = True
        self.calls: list[Call] = []

    def handle(self, connection: Connection, frame: memoryview) -> None:
        call = Call(cast(Any, None), connection, cast(Any, Handler()), 0, 0, None, 0.0)
        connection.enqueue(call)
        self.calls.append(call)
        if self.answers:
            call.complete((bytes(frame),))


class Peer(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = b""
        self.is_lost = False
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True


class Place:
    def __init__(self, environment: Environment, **limits: Any) -> None:
        loop = asyncio.get_running_loop()
        self.environment = environment
        self.requests = Echo()
        self.limits = ConnectionLimits(
            **{"connections_max": 10, "connections_max_per_ip": 10, "overrides_per_ip": {}, **limits}
        )
        self.per_ip: dict[str, int] = {}
        self._turn = EventBatch(loop.call_soon, self._raise)
        self._shared = SharedBuffer()

    @staticmethod
    def _raise(error: Exception) -> None:
        raise error

    def listener(self, port: int = 9092, host: str = "") -> Listener:
        return Listener(
            ListenerAddress(name="PLAINTEXT", host=host, port=port, protocol="PLAINTEXT"),
            cast(Any, self.requests),
            ListenerContext(
                network=self.environment.network,
                turn=self._turn,
                now=asyncio.get_running_loop().time,
                shared_buffer=self._shared,
                frame_bytes_max=1000,
                limits=self.limits,
                per_ip=self.per_ip,
            ),
        )

    async def connect(self, port: int = 9092) -> Peer:
        _, peer = await self.environment.network.connect(Peer, host="harness", port=port)
        await asyncio.sleep(0.1)
        return cast(Peer, peer)


def placed(scenario: Callable[[Place], Coroutine[Any, Any, None]], **limits: Any) -> None:
    async def whole(environment: Environment) -> None:
        await scenario(Place(environment, **limits))

    with World(1) as world:
        world.run(whole, limit_s=1000)


FRAME = b"\x00\x00\x00\x0a" + b"0123456789"


@pytest.mark.parametrize(
    ("host", "text"), [("", "PLAINTEXT://:9092"), ("h", "PLAINTEXT://h:9092"), ("::1", "PLAINTEXT://[::1]:9092")]
)
def test_addresses_are_shown_as_they_are_written(host: str, text: str) -> None:
    assert str(ListenerAddress(name="PLAINTEXT", host=host, port=9092, protocol="PLAINTEXT")) == text


def test_a_port_of_zero_is_bound_and_known_and_a_taken_one_is_named() -> None:
    async def scenario(place: Place) -> None:
        free = place.listener(0)
        await free.start()
        assert free.port > 0
        with pytest.raises(OSError, match=f"cannot listen on PLAINTEXT://:{free.port}"):
            await place.listener(free.port).start()

    placed(scenario)


def test_clients_of_other_networks_are_refused() -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        listener.open()
        listener.allowed_networks = Networks(["192.168.0.0/16"])
        assert (await place.connect()).is_lost
        listener.allowed_networks = None
        assert not (await place.connect()).is_lost
        assert place.limits.connections == 1

    placed(scenario)


def test_refused_connections_are_counted_and_some_of_them_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        listener.open()
        for _ in range(3):
            assert (await place.connect()).is_lost
        await asyncio.sleep(10)
        for _ in range(2):
            assert (await place.connect()).is_lost
        assert listener.connections_refused == 5

    placed(scenario, connections_max=0)
    told = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert [message.partition("refused: ")[2] for message in told] == [
        "max.connections=0 reached",
        "max.connections=0 reached (2 others since the last message)",
    ]


@needs_sources
def test_connections_wait_until_it_is_open() -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        early = await place.connect()
        early.transport.write(FRAME)
        await asyncio.sleep(1)
        assert place.requests.calls == []
        listener.open()
        await asyncio.sleep(1)
        assert early.received == FRAME[4:]
        late = await place.connect()
        late.transport.write(FRAME)
        await asyncio.sleep(1)
        assert late.received == FRAME[4:]
        assert listener.bytes_in.value == 2 * len(FRAME)
        assert listener.connections_accepted == 2

    placed(scenario)


def test_limits_are_counted_over_all_listeners_and_given_back() -> None:
    async def scenario(place: Place) -> None:
        first, second = place.listener(9092), place.listener(9093)
        for listener in (first, second):
            await listener.start()
            listener.open()
        peers = [await place.connect(9092), await place.connect(9093), await place.connect(9092)]
        assert [peer.is_lost for peer in peers] == [False, False, True]
        assert (place.limits.connections, len(first.connections), len(second.connections)) == (2, 1, 1)
        peers[0].transport.close()
        await asyncio.sleep(0.1)
        assert place.limits.connections == 1
        assert not (await place.connect(9093)).is_lost

    placed(scenario, connections_max=2)


def test_the_descriptors_that_logs_need_are_not_for_clients() -> None:
    async def scenario(place: Place) -> None:
        for_clients, for_nodes = place.listener(9092), place.listener(9093)
        for_nodes.is_reserved = True
        for listener in (for_clients, for_nodes):
            await listener.start()
            listener.open()
        assert [(await place.connect(9092)).is_lost for _ in range(3)] == [False, False, True]
        assert not (await place.connect(9093)).is_lost

    placed(scenario, connections_possible=2)


def test_one_address_may_have_a_limit_of_its_own() -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        listener.open()
        peers = [await place.connect() for _ in range(3)]
        assert [peer.is_lost for peer in peers] == [False, True, True]
        (address,) = place.per_ip
        place.limits.overrides_per_ip[address] = 2
        assert not (await place.connect()).is_lost
        assert (await place.connect()).is_lost
        for peer in peers:
            peer.transport.close()
        await asyncio.sleep(0.1)
        assert place.per_ip == {address: 1}

    placed(scenario, connections_max_per_ip=1)


@needs_sources
def test_those_that_idle_are_closed_and_those_that_wait_are_not() -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        listener.open()
        idle, waits = await place.connect(), await place.connect()
        place.requests.answers = False
        waits.transport.write(FRAME)
        await asyncio.sleep(20)
        listener.close_overdue(idle_max=30, frame_max=30, stall_max=30)
        await asyncio.sleep(15)
        listener.close_overdue(idle_max=30, frame_max=30, stall_max=30)
        await asyncio.sleep(1)
        assert (idle.is_lost, waits.is_lost) == (True, False)

    placed(scenario)


@needs_sources
def test_draining_answers_first_and_aborting_does_not() -> None:
    async def scenario(place: Place) -> None:
        listener = place.listener()
        await listener.start()
        listener.open()
        place.requests.answers = False
        peers = [await place.connect(), await place.connect()]
        for peer in peers:
            peer.transport.write(FRAME)
        await asyncio.sleep(1)
        listener.stop_accepting()
        with pytest.raises(OSError):
            await place.connect()
        listener.drain()
        await asyncio.sleep(1)
        assert [peer.is_lost for peer in peers] == [False, False]
        place.requests.calls[0].complete((b"answer",))
        await asyncio.sleep(1)
        assert [(peer.is_lost, peer.received) for peer in peers] == [(True, b"answer"), (False, b"")]
        listener.abort()
        await asyncio.sleep(1)
        assert peers[1].is_lost
        assert (listener.connections, place.limits.connections) == ({}, 0)

    placed(scenario)
