"""Fixtures of the interop suite: one node, one proxy before it, and a driver per client.

Nothing is collected by a run over all tests: the suite must be asked for, by `python -m tests.interop`, which names the
system under test in INTEROP_SYSTEM, or by giving pytest this directory.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable, Iterator

import pytest

SYSTEM = os.environ.get("INTEROP_SYSTEM", "millbeck" if any("tests/interop" in one for one in sys.argv) else "")
if not SYSTEM:
    collect_ignore_glob = ["*"]
else:
    from confluent_kafka.admin import AdminClient, NewTopic

    from bench.raw import RawConnection, StoredBatch, wait_until_led
    from bench.systems import SYSTEMS, Node
    from tests.interop.clients import CLIENTS, Client, DriverSession
    from tests.interop.proxy import CuttingProxy
    from tools.peers import PeerUnavailable

    CHOSEN_CLIENTS = [name for name in os.environ.get("INTEROP_CLIENTS", "").split(",") if name] or list(CLIENTS)
    # A missing client fails its tests unless it was said that some may be missing.
    MISSING_ALLOWED = os.environ.get("INTEROP_ALLOW_MISSING") == "1"

    @pytest.fixture(scope="session")
    def system() -> str:
        return SYSTEM

    @pytest.fixture(scope="session")
    def proxy() -> Iterator[CuttingProxy]:
        proxy = CuttingProxy()
        yield proxy
        proxy.close()

    @pytest.fixture(scope="session")
    def node(system: str, proxy: CuttingProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
        """The node that most tests share. Groups form at once, so that rebalances take no longer than they must."""
        node = SYSTEMS[system](
            tmp_path_factory.mktemp("node"),
            overrides={"group.initial.rebalance.delay.ms": "0"},
            proxied_port=proxy.port,
        )
        with node:
            proxy.serve(node.behind_proxy_port)
            yield node

    @pytest.fixture(scope="session", params=CHOSEN_CLIENTS)
    def client(request: pytest.FixtureRequest) -> Client:
        return CLIENTS[request.param]

    def open_session(client: Client, bootstrap: str) -> DriverSession:
        try:
            return DriverSession(client, bootstrap)
        except PeerUnavailable as missing:
            if MISSING_ALLOWED:
                pytest.skip(str(missing))
            raise

    @pytest.fixture(scope="session")
    def _sessions(node: Node) -> Iterator[dict[str, DriverSession]]:
        sessions: dict[str, DriverSession] = {}
        yield sessions
        for session in sessions.values():
            session.close()

    @pytest.fixture
    def driver(client: Client, node: Node, _sessions: dict[str, DriverSession]) -> DriverSession:
        """The client's driver; a new one when the last test ended it."""
        session = _sessions.get(client.name)
        if session is None or not session.alive:
            session = _sessions[client.name] = open_session(client, node.bootstrap)
        return session

    @pytest.fixture
    def new_driver(client: Client) -> Iterator[Callable[[str], DriverSession]]:
        """Opens further drivers of the same client; all are closed at the end of the test."""
        opened: list[DriverSession] = []

        def open_one(bootstrap: str) -> DriverSession:
            opened.append(open_session(client, bootstrap))
            return opened[-1]

        yield open_one
        for session in opened:
            session.close()

    @pytest.fixture(scope="session")
    def admin(node: Node) -> AdminClient:
        """The suite's own way to prepare and to check, beside the client under test."""
        return AdminClient({"bootstrap.servers": node.bootstrap})

    _names = itertools.count()

    @pytest.fixture
    def new_topic(node: Node, admin: AdminClient) -> Callable[..., str]:
        def create(partitions: int = 1, **configs: str) -> str:
            name = f"topic-{os.getpid()}-{next(_names)}"
            dotted = {key.replace("_", "."): value for key, value in configs.items()}
            admin.create_topics([NewTopic(name, partitions, 1, config=dotted)])[name].result(30)
            wait_until_led(node.bootstrap, name, partitions)
            return name

        return create

    @pytest.fixture
    def stored(node: Node) -> Callable[..., list[StoredBatch]]:
        """What lies in the log: whole, contiguous, with good checksums, in the current format."""

        def read(topic: str, partition: int = 0, offset: int = 0) -> list[StoredBatch]:
            with RawConnection(node.bootstrap) as connection:
                batches = list(connection.stored_batches(topic, partition, offset))
            next_offset = offset
            for batch in batches:
                assert batch.crc_valid, batch
                assert batch.magic == 2, batch
                assert batch.base_offset == next_offset, batch
                assert batch.record_count == batch.last_offset_delta + 1, batch
                next_offset = batch.next_offset
            return batches

        return read
