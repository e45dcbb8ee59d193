"""TLS connections on real sockets: the handshake's limits, what is delivered at once, how they end, and failures."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from millbeck.host import real_environment, tls_handshakes, tls_protocol
from millbeck.host.loop import HostLoop
from millbeck.kernel.environment import Environment
from millbeck.kernel.tls import TlsContext, TlsFailed, TlsFailure


class Server(asyncio.BufferedProtocol):
    """Remembers each delivery."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.buffer = memoryview(bytearray(256 << 10))
        self.deliveries: list[bytes] = []
        self.certificate: bytes | None = None
        self.is_secured = False
        self.is_lost = False
        self.error: Exception | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.stream = self.environment.network.connection_stream(transport)

    def handshake_completed(self, certificate: bytes | None) -> None:
        self.is_secured = True
        self.certificate = certificate

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.deliveries.append(bytes(self.buffer[:nbytes]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.stream.closed()
        self.is_lost = True
        self.error = exc


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.received = bytearray()
        self.is_lost = False
        self.error: Exception | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self.error = exc


class Bench:
    """One listener, its accepted protocols, and contexts of both sides that a test may change."""

    def __init__(self, environment: Environment, authority: trustme.CA) -> None:
        self.environment = environment
        self.servers: list[Server] = []
        self.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost", "127.0.0.1").configure_cert(self.server_context)
        self.client_context = ssl.create_default_context()
        authority.configure_trust(self.client_context)
        self.has_slow_key = False

    async def listen(self) -> None:
        def make() -> Server:
            self.servers.append(Server(self.environment))
            return self.servers[-1]

        self.listening = await self.environment.network.listen(make, host="127.0.0.1", port=0, tls=self.server_tls)

    def server_tls(self) -> TlsContext:
        return TlsContext(context=self.server_context, has_slow_key=self.has_slow_key)

    async def connect(self) -> Client:
        _, client = await self.environment.network.connect(
            Client, host="127.0.0.1", port=self.listening.port, tls=lambda: TlsContext(context=self.client_context)
        )
        assert isinstance(client, Client)
        return client

    async def raw(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.listening.port)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.002)


Scenario = Callable[[Bench], Awaitable[Any]]


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=["node's loop", "asyncio's loop"])
def run(request: pytest.FixtureRequest, authority: trustme.CA) -> Callable[[Scenario], Any]:
    def run(scenario: Scenario) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(20):
                bench = Bench(real_environment(), authority)
                await bench.listen()
                try:
                    return await scenario(bench)
                finally:
                    bench.listening.close()

        with asyncio.Runner(loop_factory=HostLoop if request.param == "node's loop" else None) as runner:
            return runner.run(bounded())

    return run


def test_all_records_of_a_read_are_delivered_at_once(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> list[int]:
        client = await bench.connect()
        server = bench.servers[0]
        await until(lambda: server.is_secured)
        await asyncio.sleep(0.02)
        session = client.transport._session
        records = [session.encrypt([b"r" * 4_000])[0] for _ in range(10)]
        client.transport.stream._wire.send([b"".join(records)])
        await until(lambda: server.deliveries)
        return [len(each) for each in server.deliveries]

    assert run(scenario) == [40_000]


def test_replies_of_one_turn_share_a_record(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> int:
        client = await bench.connect()
        server = bench.servers[0]
        await until(lambda: server.is_secured)
        stream: Any = server.stream
        sent = b"".join(stream._session.encrypt([b"reply"] * 50))
        stream._wire.send([sent])
        await until(lambda: len(client.received) == 250)
        return len(sent)

    assert run(scenario) < 250 + 2 * 22  # what one record adds


def test_what_arrives_with_the_end_of_the_handshake_is_delivered(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> bytes:
        client = await bench.connect()
        client.transport.write(b"at once")
        await until(lambda: bench.servers[0].deliveries)
        return b"".join(bench.servers[0].deliveries)

    assert run(scenario) == b"at once"


def test_pausing_in_the_middle_of_a_read_delivers_the_rest_after_resuming(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> tuple[int, bytes]:
        client = await bench.connect()
        server = bench.servers[0]
        server.buffer = memoryview(bytearray(1000))
        delivered = server.buffer_updated

        def pausing(nbytes: int) -> None:
            delivered(nbytes)
            if len(server.deliveries) == 3:
                server.stream.pause_reading()

        server.stream.begin_reading(server.get_buffer, pausing)
        client.transport.write(bytes(range(200)) * 500)
        await until(lambda: len(server.deliveries) == 3)
        await asyncio.sleep(0.05)
        before = len(server.deliveries)
        server.stream.resume_reading()
        await until(lambda: sum(map(len, server.deliveries)) == 100_000)
        return before, b"".join(server.deliveries)

    assert run(scenario) == (3, bytes(range(200)) * 500)


def test_a_close_is_announced_and_what_was_written_arrives_before_it(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> tuple[int, Any, bool, Any]:
        client = await bench.connect()
        server = bench.servers[0]
        await until(lambda: server.is_secured)
        server.stream.send([b"x" * 3_000_000])
        server.stream.close_when_drained()
        await until(lambda: client.is_lost and server.is_lost)
        return len(client.received), client.error, client_saw_end(client), server.error

    def client_saw_end(client: Client) -> bool:
        return bool(client.transport._session.is_ended)

    assert run(scenario) == (3_000_000, None, True, None)


def test_a_peer_that_ends_its_side_gets_the_reply_to_what_it_sent(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> tuple[int, bool]:
        client = await bench.connect()
        server = bench.servers[0]

        def answering(nbytes: int) -> None:
            server.stream.send([b"r" * 2_000_000])

        server.stream.begin_reading(server.get_buffer, answering)
        session = client.transport._session
        # The question and the end in one packet: the end is noticed while the reply is being sent.
        client.transport.stream._wire.send([b"".join([*session.encrypt([b"question"]), session.close_notify()])])
        await until(lambda: client.is_lost and server.is_lost)
        return len(client.received), client.error is None

    assert run(scenario) == (2_000_000, True)


def test_a_stalled_handshake_is_ended_at_the_deadline(
    run: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_handshakes, "DEADLINE_S", 0.2)

    async def scenario(bench: Bench) -> tuple[bool, Any, bool]:
        _, writer = await bench.raw()
        hello = client_hello(bench)
        writer.write(hello[:20])
        await until(lambda: bench.servers)
        server = bench.servers[0]
        counted = not server.is_lost  # the protocol has its connection while the handshake lasts
        for byte in hello[20:60]:
            await asyncio.sleep(0.01)
            if server.is_lost:
                break
            writer.write(bytes([byte]))
        await until(lambda: server.is_lost)
        writer.close()
        assert isinstance(server.error, TlsFailed)
        return counted, server.error.failure, server.is_secured

    assert run(scenario) == (True, TlsFailure.TIMEOUT, False)


def client_hello(bench: Bench) -> bytes:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = bench.client_context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


NOT_TLS = {
    "a Kafka request": b"\x00\x00\x00\x12\x00\x12\x00\x03",
    "HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "zeros": bytes(500),
}


@pytest.mark.parametrize("sent", NOT_TLS.values(), ids=NOT_TLS.keys())
def test_plain_text_is_recognised(run: Callable[[Any], Any], sent: bytes) -> None:
    async def scenario(bench: Bench) -> tuple[Any, bytes]:
        reader, writer = await bench.raw()
        writer.write(sent)
        await until(lambda: bench.servers and bench.servers[0].is_lost)
        writer.close()
        error = bench.servers[0].error
        assert isinstance(error, TlsFailed)
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
        return error.failure, answer

    assert run(scenario) == (TlsFailure.NOT_TLS, b"")


def test_a_client_learns_that_the_port_speaks_no_tls(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> Any:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as plain:
            port = plain.sockets[0].getsockname()[1]
            tls = TlsContext(context=bench.client_context)
            with pytest.raises(TlsFailed) as failed:
                await bench.environment.network.connect(Client, host="127.0.0.1", port=port, tls=lambda: tls)
        return failed.value.failure, str(failed.value)

    assert run(scenario) == (TlsFailure.NOT_TLS, "the peer does not speak TLS")


def test_both_sides_say_why_a_certificate_is_refused(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> tuple[str, str]:
        bench.client_context = ssl.create_default_context()
        with pytest.raises(TlsFailed) as failed:
            await bench.connect()
        await until(lambda: bench.servers[0].is_lost)
        return str(failed.value), str(bench.servers[0].error)

    ours, theirs = run(scenario)
    assert ours == "the certificate is refused: unable to get local issuer certificate"
    assert theirs == "the peer refused the connection with the alert: unknown ca"


def test_a_client_without_a_certificate_reads_the_alert_before_the_connection_ends(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> str:
        bench.server_context.verify_mode = ssl.CERT_REQUIRED
        client = await bench.connect()
        client.transport.write(b"too early")
        await until(lambda: client.is_lost)
        return str(client.error)

    assert run(scenario) == "the peer refused the connection with the alert: certificate required"


def test_the_peers_certificate_is_reported(run: Callable[[Any], Any], authority: trustme.CA) -> None:
    async def scenario(bench: Bench) -> tuple[bool, bytes | None]:
        first = await bench.connect()
        await until(lambda: bench.servers[0].is_secured)
        without = bench.servers[0].certificate is None
        authority.configure_trust(bench.server_context)
        bench.server_context.verify_mode = ssl.CERT_REQUIRED
        authority.issue_cert("a-client").configure_cert(bench.client_context)
        await bench.connect()
        await until(lambda: bench.servers[1].is_secured)
        del first
        return without, bench.servers[1].certificate

    without, certificate = run(scenario)
    assert without
    assert certificate is not None
    names = x509.load_der_x509_certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert names.value.get_values_for_type(x509.DNSName) == ["a-client"]


def test_a_changed_record_ends_the_connection_and_nothing_of_it_is_delivered(run: Callable[[Any], Any]) -> None:
    async def scenario(bench: Bench) -> tuple[bytes, bool]:
        client = await bench.connect()
        server = bench.servers[0]
        session = client.transport._session
        good, bad = session.encrypt([b"good"]), bytearray(b"".join(session.encrypt([b"bad"])))
        bad[-1] ^= 1
        client.transport.stream._wire.send([*good, bytes(bad)])
        await until(lambda: server.is_lost)
        return b"".join(server.deliveries), isinstance(server.error, TlsFailed)

    assert run(scenario) == (b"good", True)


def test_slow_keys_leave_the_event_loop_free(
    run: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    key_and_chain = tmp_path / "slow.pem"
    key_and_chain.write_bytes(rsa_4096())
    steps: list[str] = []
    step = tls_protocol.TlsProtocol.step

    def noted(self: tls_protocol.TlsProtocol) -> Any:
        steps.append(str(self.has_slow_key))
        return step(self)

    monkeypatch.setattr(tls_protocol.TlsProtocol, "step", noted)

    async def scenario(bench: Bench) -> tuple[bytes, set[str]]:
        bench.server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        bench.server_context.load_cert_chain(key_and_chain)
        bench.client_context = ssl.create_default_context(cafile=str(key_and_chain))
        bench.has_slow_key = True
        clients = await asyncio.gather(*(bench.connect() for _ in range(6)))
        for client in clients:
            client.transport.write(b"1")
        await until(lambda: all(server.deliveries for server in bench.servers))
        return b"".join(b"".join(server.deliveries) for server in bench.servers), set(steps)

    assert run(scenario) == (b"111111", {"False"})  # the steps on the loop are the clients'


def rsa_4096() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=3072)  # a 4096-bit one takes seconds to make
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    address = x509.DNSName("127.0.0.1")
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([address, x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    encoded: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    return encoded


def test_handshakes_take_a_bounded_share_of_each_iteration(
    run: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each step is made to take 5 ms: then an iteration does one of them, whatever the number of connections."""
    monkeypatch.setattr(tls_handshakes, "SECONDS_PER_ITERATION", 0.004)
    slowed = tls_protocol.TlsProtocol.step
    gaps: list[float] = []

    def slow(self: Any) -> None:
        time.sleep(0.005)
        slowed(self)

    async def scenario(bench: Bench) -> float:
        monkeypatch.setattr(tls_protocol.TlsProtocol, "step", slow)
        connecting = [asyncio.ensure_future(bench.connect()) for _ in range(12)]
        begin = time.monotonic()
        while not all(each.done() for each in connecting):
            await asyncio.sleep(0)
            gaps.append(time.monotonic() - begin)
            begin = time.monotonic()
        await asyncio.gather(*connecting)
        return sorted(gaps)[len(gaps) * 9 // 10]

    assert run(scenario) < 0.03
