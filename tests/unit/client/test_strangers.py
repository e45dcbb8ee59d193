"""What is wrong with an address, in one line: real servers that are no brokers, names, and advertised addresses."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trustme

from millbeck.client.addresses import Address
from millbeck.client.config import Value
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.errors import ConnectFailed, DeliveryTimeout, NoBrokerReachable
from millbeck.client.producer import Producer
from millbeck.client.retry import Deadline
from millbeck.host import real_environment
from millbeck.kernel.tls import TlsContext
from tests.unit.client.fake_cluster import FakeCluster, simulate
from tests.unit.client.test_cluster import open_cluster


async def explanation(port: int, host: str = "127.0.0.1", *, client_id: str = "tester", timeout_s: float = 10) -> str:
    settings = ConnectionSettings(client_id=client_id, connect_timeout_s=timeout_s)
    with pytest.raises(ConnectFailed) as raised:
        await Connection.open(real_environment().network, Address(host, port), settings)
    assert "\n" not in str(raised.value)
    return str(raised.value)


class QuietHandler(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def http_server() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), QuietHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_an_http_server_is_named() -> None:
    """Python's HTTP server answers once it has a line, which the length of a client id of ten characters ends."""
    with http_server() as port:
        said = asyncio.run(explanation(port, client_id="0123456789"))
    assert said == (
        f"no connection to 127.0.0.1:{port}: an HTTP server answered; is this the port of a Kafka listener?"
    )


def test_an_http_server_that_refuses_the_first_byte_is_named() -> None:
    uvicorn = pytest.importorskip("uvicorn")

    async def serve() -> str:
        config = uvicorn.Config(None, http="h11", log_level="critical", lifespan="off")
        config.load()
        state = uvicorn.server.ServerState()

        def make() -> Any:
            return config.http_protocol_class(config=config, server_state=state, app_state={})

        async with await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0) as server:
            return await explanation(server.sockets[0].getsockname()[1])

    assert "an HTTP server answered; is this the port of a Kafka listener?" in asyncio.run(serve())


def test_a_server_that_waits_for_more_is_asked_about() -> None:
    with http_server() as port:
        said = asyncio.run(explanation(port, timeout_s=0.3))
    assert said == (
        f"no connection to 127.0.0.1:{port} within 300 ms; it accepts connections but does not answer ApiVersions: "
        "is this the port of a Kafka listener?"
    )


@pytest.mark.parametrize("trouble", ["part of an answer", "no TLS handshake"])
def test_a_timeout_after_or_before_the_first_answer_says_no_more_than_that(trouble: str) -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if trouble == "part of an answer":
            writer.write(bytes(3))
        await reader.read()
        writer.close()

    async def serve() -> tuple[str, int]:
        tls = None if trouble == "part of an answer" else TlsContext(context=ssl.create_default_context())
        settings = ConnectionSettings(connect_timeout_s=0.2, tls=None if tls is None else lambda: tls)
        async with await asyncio.start_server(stall, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(ConnectFailed) as raised:
                await Connection.open(real_environment().network, Address("127.0.0.1", port), settings)
            return str(raised.value), port

    said, port = asyncio.run(serve())
    assert said == f"no connection to 127.0.0.1:{port} within 200 ms"


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    return context


@pytest.mark.parametrize("listener", ["asyncio", "millbeck"])
def test_a_tls_port_spoken_to_in_plain_text_names_the_setting(listener: str) -> None:
    context = server_context()

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def serve() -> str:
        if listener == "asyncio":
            async with await asyncio.start_server(ignore, "127.0.0.1", 0, ssl=context) as server:
                return await explanation(server.sockets[0].getsockname()[1])
        bound = await real_environment().network.listen(
            asyncio.Protocol, host="127.0.0.1", port=0, tls=lambda: TlsContext(context=context)
        )
        try:
            return await explanation(bound.port)
        finally:
            bound.close()

    assert "set security.protocol=SSL" in asyncio.run(serve())


def test_a_tls_server_that_sends_an_alert_is_named() -> None:
    """OpenSSL says nothing to plain text; the TLS of Java and Go answers with an alert."""

    async def alert(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(bytes.fromhex("15030300020246"))
        writer.close()

    async def serve() -> str:
        async with await asyncio.start_server(alert, "127.0.0.1", 0) as server:
            return await explanation(server.sockets[0].getsockname()[1])

    assert "the server uses TLS, but this client does not: set security.protocol=SSL or SASL_SSL" in asyncio.run(
        serve()
    )


def test_a_name_that_does_not_resolve_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    said = asyncio.run(explanation(9092, "kafka.invalid"))
    assert said == (
        "no connection to kafka.invalid:9092: the name kafka.invalid does not resolve on this machine "
        "(Name or service not known)"
    )


def test_a_name_that_can_be_no_host_s_is_named() -> None:
    assert "'a..b' is not a valid host name" in asyncio.run(explanation(9092, "a..b"))


def advertise(fake: FakeCluster, node_id: int, port: int) -> None:
    """Let the cluster name a port for a broker at which nothing listens."""
    fake.brokers[node_id].stop()
    fake.brokers[node_id].port = port


HINT = "connection refused; broker 2 advertises this address: see its advertised.listeners"


def test_an_advertised_address_that_was_never_reached_names_the_broker_s_setting() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, f"127.0.0.1:{fake.brokers[1].port}")
        advertise(fake, 2, 5)
        await cluster.refresh(Deadline(30))
        with pytest.raises(ConnectFailed, match=f"127.0.0.1:5: {HINT}"):
            await cluster.connection(2, deadline=Deadline(30))
        outage = cluster.why_unreachable(2)
        assert outage is not None
        assert outage.endswith(HINT)
        assert cluster.why_unreachable(1) is None
        await cluster.close()

    simulate(scenario, brokers=2)


def test_an_address_that_the_client_was_given_is_not_blamed_on_the_broker_s_setting() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, f"127.0.0.1:{fake.brokers[1].port},127.0.0.1:5")
        advertise(fake, 2, 5)
        await cluster._connect((cluster._bootstrap[0], "general"), Deadline(30))
        await cluster.refresh(Deadline(30))
        with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:5: connection refused$"):
            await cluster.connection(2, deadline=Deadline(30))
        await cluster.close()

    simulate(scenario, brokers=2)


def test_an_address_that_was_once_reached_is_not_blamed_on_the_broker_s_setting() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, f"127.0.0.1:{fake.brokers[1].port}")
        await cluster.refresh(Deadline(30))
        await cluster.connection(2, deadline=Deadline(30))
        for broker in fake.brokers.values():
            broker.stop()
        await asyncio.sleep(1)
        with pytest.raises(NoBrokerReachable) as raised:
            await cluster.refresh(Deadline(30))
        assert "connection refused" in str(raised.value)
        assert "advertise" not in str(raised.value)
        await cluster.close()

    simulate(scenario, brokers=2)


def test_records_for_a_broker_that_cannot_be_reached_fail_with_the_reason() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 1, leader_id=2)
        settings: dict[str, Value] = {
            "bootstrap.servers": f"127.0.0.1:{fake.brokers[1].port}",
            "delivery.timeout.ms": 10_000,
            "request.timeout.ms": 5000,
        }
        advertise(fake, 2, 5)
        async with Producer(settings, environment=fake.environment) as producer:
            with pytest.raises(DeliveryTimeout, match=f"the last attempt: no connection to 127.0.0.1:5: {HINT}"):
                await producer.send("a", b"never arrives")

    simulate(scenario, brokers=2)
