"""What is accepted is counted one by one; a lack of descriptors is waited for."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from typing import Any

import pytest

from millbeck.host import acceptor as acceptor_module
from millbeck.host.acceptor import Acceptor


def _listening() -> socket.socket:
    bound = socket.create_server(("127.0.0.1", 0), backlog=100)
    bound.setblocking(False)
    return bound


def test_without_descriptors_it_tries_again_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(acceptor_module, "RETRY_S", 0.05)

    class Exhausted(socket.socket):
        refusals = 2

        def accept(self) -> Any:
            if Exhausted.refusals:
                Exhausted.refusals -= 1
                raise OSError(errno.EMFILE, "Too many open files")
            return super().accept()

    async def scenario() -> None:
        bound = _listening()
        made: list[asyncio.BaseProtocol] = []

        def make() -> asyncio.BaseProtocol:
            made.append(asyncio.Protocol())
            return made[-1]

        acceptor = Acceptor(Exhausted(fileno=bound.detach()), make)
        peer = socket.create_connection(acceptor._socket.getsockname())
        await asyncio.sleep(0.02)
        assert not made
        while not made:
            await asyncio.sleep(0.01)
        acceptor.close()
        acceptor.close()
        peer.close()

    asyncio.run(scenario())
    (first, second) = [record.getMessage() for record in caplog.records]
    assert (
        first == second == "no connection can be accepted: Too many open files; see the limit of open files (ulimit -n)"
    )


def test_a_peer_that_has_gone_gets_no_protocol() -> None:
    """Its address is not known any more, so nothing that it sent may take effect."""

    async def scenario() -> list[object]:
        bound = _listening()
        made: list[object] = []

        def make() -> asyncio.BaseProtocol:
            made.append(1)
            return asyncio.Protocol()

        gone = socket.create_connection(bound.getsockname())
        gone.sendall(b"a request")
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.close()  # by a reset
        acceptor = Acceptor(bound, make)
        await asyncio.sleep(0.05)
        acceptor.close()
        return made

    assert asyncio.run(scenario()) == []
