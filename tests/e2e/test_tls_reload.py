"""Ten renewals under 200 producing connections: none of them notices, and new connections see each within a second."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from bench import raw
from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType
from millbeck.kernel.errors import InvalidRequest
from millbeck.server.node import Node
from tests.fixtures.authority import Authority
from tests.unit.server.harness.real_node import running

CONNECTIONS = 200
PAUSE_S = 0.25
INTERVAL_S = 0.4
WITHIN_S = 1.0
BATCH = raw.build_batch([b"value"])


class Producers:
    """Connections that produce all the time; `errors` is what went wrong on them."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context
        self.acknowledged = 0
        self.errors: list[str] = []

    async def run(self) -> None:
        await asyncio.gather(*(self._work(number) for number in range(CONNECTIONS)))

    async def _work(self, number: int) -> None:
        body = raw.produce_body("t", 0, BATCH, acks=1)
        header = struct.pack(">hhih", 0, 7, 1, 3) + b"raw"
        frame = struct.pack(">i", len(header) + len(body)) + header + body
        await asyncio.sleep(number / CONNECTIONS)
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context)
            while True:
                writer.write(frame)
                size = int.from_bytes(await reader.readexactly(4), "big")
                reply = raw.Reader(await reader.readexactly(size))
                reply.take("i"), reply.take("i"), reply.string(), reply.take("i"), reply.take("i")
                if error := reply.take("h"):
                    self.errors.append(f"error {error}")
                self.acknowledged += 1
                await asyncio.sleep(PAUSE_S)
        except (OSError, asyncio.IncompleteReadError) as error:
            self.errors.append(repr(error))


class Renewals:
    """Changes one thing after the other, and connects until it shows."""

    def __init__(self, node: Node, directory: Path, old: Authority, new: Authority) -> None:
        self.node = node
        self.directory = directory
        self.old, self.new = old, new
        self.port = node.listeners[0].port
        self.client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.client.load_verify_locations(cadata=(old.pem + new.pem).decode())
        self.client.load_cert_chain(self.file("client.pem", old.issue("client")))
        self.took: list[float] = []

    def file(self, name: str, data: bytes) -> Path:
        """Replaced as a whole, as tools that renew certificates do."""
        path = self.directory / name
        (self.directory / "next").write_bytes(data)
        (self.directory / "next").rename(path)
        return path

    def signal(self) -> None:
        """What SIGHUP does to a node in a process of its own."""
        self.node._loop.call_soon_threadsafe(self.node.reload)

    async def presented(self, client: ssl.SSLContext) -> tuple[str, str]:
        """The key type and owner of the certificate that a new connection gets."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=client)
        try:
            writer.write(struct.pack(">ihhih", 13, 18, 0, 1, 3) + b"new")
            await reader.readexactly(4)
            found = x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
            return type(found.public_key()).__name__, found.issuer.rfc4514_string()
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def shows(self, expected: tuple[str, str], *, within_s: float = WITHIN_S) -> None:
        await self._until(lambda: self._presents(expected), within_s)

    async def refuses(self, client: ssl.SSLContext, *, within_s: float = WITHIN_S) -> None:
        async def refused() -> bool:
            try:
                await self.presented(client)
            except (OSError, asyncio.IncompleteReadError):
                return True
            return False

        await self._until(refused, within_s)

    async def maps_to(self, principal: str, *, within_s: float = WITHIN_S) -> None:
        async def mapped() -> bool:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.client)
            writer.write(struct.pack(">ihhih", 13, 18, 0, 1, 3) + b"new")
            await reader.readexactly(4)
            newest = max(self.node.listeners[0].connections.items())[1]
            writer.close()
            return str(newest.principal) == principal

        await self._until(mapped, within_s)

    async def _presents(self, expected: tuple[str, str]) -> bool:
        return await self.presented(self.client) == expected

    async def _until(self, condition: Any, within_s: float) -> None:
        began = time.monotonic()
        while not await condition():
            assert time.monotonic() - began < 10, "never"
            await asyncio.sleep(0.02)
        self.took.append(time.monotonic() - began - within_s)


async def renew_ten_times(node: Node, renewals: Renewals) -> None:
    old, new, file = renewals.old, renewals.new, renewals.file
    by_file = INTERVAL_S + WITHIN_S
    async with Admin({"bootstrap.servers": f"127.0.0.1:{node.listeners[1].port}"}) as admin:

        async def configure(name: str, value: str) -> None:
            resource = ConfigResource(ResourceType.BROKER, str(node.node_id))
            change = ConfigChange(name=f"listener.name.tls.{name}", value=value)
            (await admin.incremental_alter_configs({resource: [change]})).all()

        for path, reason in (
            (file("expired.pem", old.issue(days=(-2, -1))), "has expired"),
            (file("stranger.pem", old.issue("stranger")), "ssl.allow.dn.changes"),
            (renewals.directory / "missing.pem", "No such file"),
        ):
            with pytest.raises(InvalidRequest, match=f"cannot use this: .*{reason}"):
                await configure("ssl.keystore.location", str(path))
        file("node.pem", old.issue(rsa_bits=2048))
        await renewals.shows(("RSAPublicKey", "CN=old"), within_s=by_file)
        file("node.pem", old.issue())
        renewals.signal()
        await renewals.shows(("ECPublicKey", "CN=old"))
        file("trust.pem", old.pem + new.pem)
        stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        stranger.load_verify_locations(cadata=(old.pem + new.pem).decode())
        stranger.load_cert_chain(file("stranger.pem", new.issue("stranger")))
        renewals.signal()
        await renewals._until(lambda: _connects(renewals, stranger), WITHIN_S)
        file("node.pem", new.issue())
        await renewals.shows(("ECPublicKey", "CN=new"), within_s=by_file)
        await configure("ssl.keystore.location", str(file("other.pem", new.issue(rsa_bits=2048))))
        await renewals.shows(("RSAPublicKey", "CN=new"))
        await configure("ssl.principal.mapping.rules", "RULE:^CN=(.*)$/$1/U")
        await renewals.maps_to("User:CLIENT")
        await configure("ssl.principal.mapping.rules", "RULE:^CN=(.*)$/the-$1/")
        await renewals.maps_to("User:the-client")
        await configure("ssl.keystore.location", str(file("third.pem", new.issue())))
        await renewals.shows(("ECPublicKey", "CN=new"))
        file("third.pem", new.issue(rsa_bits=2048))
        await renewals.shows(("RSAPublicKey", "CN=new"), within_s=by_file)
        file("trust.pem", new.pem)  # the clients' authority is no longer trusted
        renewals.signal()
        await renewals.refuses(renewals.client)


async def _connects(renewals: Renewals, client: ssl.SSLContext) -> bool:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        await renewals.presented(client)
        return True
    return False


def test_renewals_under_load(tmp_path: Path) -> None:
    old, new = Authority("old"), Authority("new")
    (tmp_path / "node.pem").write_bytes(old.issue())
    (tmp_path / "trust.pem").write_bytes(old.pem)
    options = {
        "listeners": "TLS://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "TLS:SSL,PLAINTEXT:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "ssl.keystore.location": str(tmp_path / "node.pem"),
        "ssl.truststore.location": str(tmp_path / "trust.pem"),
        "ssl.client.auth": "required",
        "num.partitions": "1",
        "millbeck.ssl.reload.interval.ms": str(int(INTERVAL_S * 1000)),
    }

    async def scenario(node: Node) -> tuple[Producers, Renewals]:
        renewals = Renewals(node, tmp_path, old, new)
        producers = Producers(renewals.port, renewals.client)
        producing = asyncio.ensure_future(producers.run())
        async with asyncio.timeout(60):
            while producers.acknowledged < 2 * CONNECTIONS:
                await asyncio.sleep(0.05)
            await renew_ten_times(node, renewals)
            before = producers.acknowledged
            while producers.acknowledged < before + CONNECTIONS:
                await asyncio.sleep(0.05)
        producing.cancel()
        await asyncio.gather(producing, return_exceptions=True)
        return producers, renewals

    with running(tmp_path / "data", **dict[str, Any](options)) as node:
        raw.first_accepted_produce(f"127.0.0.1:{node.listeners[1].port}", "t", deadline_s=time.monotonic() + 20)
        producers, renewals = asyncio.run(scenario(node))
        assert node.listeners[0].tls is not None
        assert node.listeners[0].tls.reload_failures == 0
    assert producers.errors == []
    assert len(renewals.took) == 10
    assert max(renewals.took) <= 0, renewals.took
