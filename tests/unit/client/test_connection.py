"""A connection on the simulator's network: order, deadlines, limits, and every way it can end."""

from __future__ import annotations

import asyncio
import errno
from typing import Any, cast

import pytest

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings, _reason_of
from millbeck.client.errors import (
    ConnectFailed,
    ConnectionClosed,
    Disconnected,
    ProtocolViolation,
    RequestTimeout,
    UnsupportedByBroker,
)
from millbeck.kernel.errors import ApiError
from millbeck.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse
from millbeck.wire.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.client.fake_cluster import CLOSE, SILENCE, Call, FakeCluster, later, simulate


def settings(**options: Any) -> ConnectionSettings:
    return ConnectionSettings(client_id="tester", **options)


async def connect(cluster: FakeCluster, **options: Any) -> Connection:
    (broker, *_) = cluster.brokers.values()
    network = cluster.environment.network
    return await Connection.open(network, Address("127.0.0.1", broker.port), settings(**options))


def test_a_request_is_answered_in_the_highest_common_version() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(MetadataRequest, 1, 9)
        connection = await connect(cluster)
        response = await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)
        assert response.cluster_id == "fake"
        (call,) = cluster.asked(MetadataRequest)
        assert (call.version, call.client_id) == (9, "tester")
        connection.close()

    simulate(scenario)


@pytest.mark.parametrize("highest", [4, 3, 2, 0])
def test_negotiation_comes_down_to_what_the_broker_has(highest: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(ApiVersionsRequest, 0, highest)
        connection = await connect(cluster)
        assert connection.versions is not None
        assert connection.versions.ranges[18] == (0, highest)
        assert [call.version for call in cluster.asked(ApiVersionsRequest)] == [highest]
        connection.close()

    simulate(scenario)


def test_many_requests_are_answered_in_order() -> None:
    async def scenario(cluster: FakeCluster) -> list[int]:
        codes = iter(range(100))
        cluster.on(HeartbeatRequest, lambda call: HeartbeatResponse(error_code=next(codes)))
        connection = await connect(cluster, in_flight_max=7)
        replies = await asyncio.gather(
            *(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60) for _ in range(40))
        )
        connection.close()
        return [reply.error_code for reply in replies]

    assert simulate(scenario) == list(range(40))


def test_no_more_requests_than_allowed_are_in_flight() -> None:
    async def scenario(cluster: FakeCluster) -> int:
        connection = await connect(cluster, in_flight_max=3)
        most = 0

        def answer(call: Call) -> Any:
            nonlocal most
            most = max(most, connection.in_flight_count)
            return later(0.1, HeartbeatResponse())(call)

        cluster.on(HeartbeatRequest, answer)
        await asyncio.gather(
            *(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60) for _ in range(10))
        )
        assert connection.has_room
        connection.close()
        return most

    assert simulate(scenario) == 3


def test_a_request_that_never_gets_room_times_out_and_leaves_the_others_alone() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(HeartbeatRequest, later(5, HeartbeatResponse()))
        connection = await connect(cluster, in_flight_max=1)
        first = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        await asyncio.sleep(0.1)
        with pytest.raises(RequestTimeout, match="unanswered"):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=1)
        assert (await first).error_code == 0
        assert connection.is_open
        connection.close()

    simulate(scenario)


def test_a_request_without_an_answer_ends_the_connection_at_its_deadline() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(HeartbeatRequest, SILENCE)
        connection = await connect(cluster)
        loop = asyncio.get_running_loop()
        began = loop.time()
        patient = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        hasty = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=2))
        with pytest.raises(RequestTimeout, match="Heartbeat"):
            await hasty
        assert loop.time() - began == pytest.approx(2, abs=0.01)
        with pytest.raises(Disconnected, match="closing the connection"):
            await patient
        assert not connection.is_open
        assert isinstance(connection.closed, Disconnected)

    simulate(scenario)


def test_a_caller_without_patience_leaves_the_connection_to_the_others() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(HeartbeatRequest, later(5, HeartbeatResponse(error_code=1)))
        cluster.on(HeartbeatRequest, lambda call: HeartbeatResponse())
        connection = await connect(cluster, patience_s=10)
        hasty = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=1))
        patient = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        with pytest.raises(RequestTimeout):
            await hasty
        assert (await patient).error_code == 0
        assert connection.in_flight_count == 0
        connection.close()

    simulate(scenario)


def test_patience_ends() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(HeartbeatRequest, SILENCE)
        connection = await connect(cluster, patience_s=10)
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(RequestTimeout):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=1)
        with pytest.raises(Disconnected):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60)
        assert loop.time() - began == pytest.approx(10, abs=0.1)

    simulate(scenario)


def test_without_time_left_nothing_is_asked() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        connection = await connect(cluster)
        with pytest.raises(RequestTimeout, match="the timeout expired"):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=0)
        assert connection.is_open
        assert not cluster.asked(HeartbeatRequest)
        connection.close()

    simulate(scenario)


def test_a_timer_is_armed_anew_for_later_deadlines() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        connection = await connect(cluster)
        cluster.on(HeartbeatRequest, lambda call: HeartbeatResponse())
        await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=1)
        await asyncio.sleep(0.9)
        cluster.next(HeartbeatRequest, SILENCE)
        with pytest.raises(RequestTimeout):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=3)

    simulate(scenario)


def test_whoever_stops_waiting_does_not_disturb_the_order() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        codes = iter(range(100))
        cluster.on(HeartbeatRequest, lambda call: later(1, HeartbeatResponse(error_code=next(codes)))(call))
        connection = await connect(cluster)
        first = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        second = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        await asyncio.sleep(0.1)
        first.cancel()
        assert (await second).error_code == 1
        connection.close()

    simulate(scenario)


def test_a_broker_that_hangs_up_ends_every_exchange() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(HeartbeatRequest, CLOSE)
        connection = await connect(cluster, in_flight_max=2)
        heard: list[ApiError] = []
        connection.on_closed(heard.append)
        outcomes = await asyncio.gather(
            *(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60) for _ in range(5)),
            return_exceptions=True,
        )
        assert all(isinstance(outcome, Disconnected) for outcome in outcomes)
        assert heard == [connection.closed]
        connection.on_closed(heard.append)
        assert len(heard) == 2
        with pytest.raises(Disconnected):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60)

    simulate(scenario)


def test_closing_ends_what_is_in_flight_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(HeartbeatRequest, lambda call: SILENCE)
        connection = await connect(cluster)
        waiting = asyncio.ensure_future(connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        await asyncio.sleep(0.1)
        connection.close()
        with pytest.raises(ConnectionClosed):
            await waiting

    simulate(scenario)


def test_nonsense_ends_the_connection() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        connection = await connect(cluster)
        (broker,) = cluster.brokers.values()

        def nonsense(call: Any) -> object:
            broker.connections[0].transport.write(b"\xff" * 8)
            return SILENCE

        cluster.on(HeartbeatRequest, nonsense)
        with pytest.raises(ProtocolViolation):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60)
        assert not connection.is_open

    simulate(scenario)


def test_a_submitted_request_calls_back_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        connection = await connect(cluster)
        outcomes: list[Any] = []
        cluster.next(HeartbeatRequest, HeartbeatResponse(error_code=27), CLOSE)
        for _ in range(2):
            connection.submit(HeartbeatRequest(), HeartbeatResponse, outcomes.append, timeout_s=5)
            assert connection.in_flight_count == 1
            await asyncio.sleep(1)
        connection.submit(HeartbeatRequest(), HeartbeatResponse, outcomes.append, timeout_s=5)
        assert outcomes[0].error_code == 27
        assert [type(outcome) for outcome in outcomes[1:]] == [Disconnected, Disconnected]

    simulate(scenario)


def test_a_broker_that_asks_for_a_pause_gets_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(HeartbeatRequest, HeartbeatResponse(throttle_time_ms=3000))
        cluster.on(HeartbeatRequest, lambda call: HeartbeatResponse())
        connection = await connect(cluster)
        loop = asyncio.get_running_loop()
        await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60)
        began = loop.time()
        with pytest.raises(RequestTimeout, match="throttles this client"):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=1)
        await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60)
        assert loop.time() - began == pytest.approx(3, abs=0.1)
        connection.close()

    simulate(scenario)


def test_an_api_the_broker_lacks_is_refused_without_asking() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(HeartbeatRequest, 1, 0)
        connection = await connect(cluster)
        with pytest.raises(UnsupportedByBroker, match="does not support Heartbeat"):
            await connection.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=5)
        assert not cluster.asked(HeartbeatRequest)
        assert connection.is_open
        connection.close()

    simulate(scenario)


def test_an_unanswered_request_is_sent_and_forgotten() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        connection = await connect(cluster)
        connection.send_no_response(ProduceRequest(acks=0, timeout_ms=1))
        await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)
        assert len(cluster.asked(ProduceRequest)) == 1
        connection.close()
        with pytest.raises(ConnectionClosed):
            connection.send_no_response(ProduceRequest(acks=0, timeout_ms=1))

    simulate(scenario)


def test_connecting_to_nobody_is_an_error_that_names_the_address() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (broker,) = cluster.brokers.values()
        broker.stop()
        with pytest.raises(ConnectFailed, match=f"127.0.0.1:{broker.port}"):
            await connect(cluster)

    simulate(scenario)


@pytest.mark.parametrize("answer", [CLOSE, SILENCE], ids=["hangs up", "says nothing"])
def test_a_broker_that_does_not_say_its_versions_is_not_connected_to(answer: Any) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(ApiVersionsRequest, answer)
        with pytest.raises(ConnectFailed):
            await connect(cluster, connect_timeout_s=2)
        await asyncio.sleep(1)
        assert cluster.connection_count == 0

    simulate(scenario)


def test_a_cancelled_open_leaves_no_connection() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(ApiVersionsRequest, SILENCE)
        opening = asyncio.ensure_future(connect(cluster))
        await asyncio.sleep(1)
        opening.cancel()
        await asyncio.sleep(1)
        assert opening.cancelled()
        assert cluster.connection_count == 0

    simulate(scenario)


TLS = cast("Any", object())
REASONS = {
    "refused": (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed"), None, "connection refused"),
    "refused before TLS": (ConnectionRefusedError(errno.ECONNREFUSED, "x"), TLS, "connection refused"),
    "ended": (ConnectionResetError(), None, "it was closed"),
    "ended in TLS": (
        ConnectionResetError(),
        TLS,
        "it was closed during the TLS handshake; does the broker use TLS on this port?",
    ),
    "no such host": (OSError(-2, "Name or service not known"), None, "Name or service not known"),
    "without a number": (OSError("Multiple exceptions"), None, "Multiple exceptions"),
}


@pytest.mark.parametrize(("error", "tls", "expected"), REASONS.values(), ids=REASONS.keys())
def test_why_nobody_was_reached_is_said_in_words(error: OSError, tls: Any, expected: str) -> None:
    assert _reason_of(error, Address("a", 1), ConnectionSettings(client_id="c", tls=tls)) == expected
