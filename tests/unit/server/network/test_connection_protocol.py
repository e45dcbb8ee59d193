"""asyncio's view of a connection passes on everything it is told."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from millbeck.server.network.connection_protocol import ConnectionProtocol


class Heard:
    """A connection that notes what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.buffer = memoryview(bytearray(4))

    def get_buffer(self, sizehint: int) -> memoryview:
        self.calls.append(("get_buffer", sizehint))
        return self.buffer

    def resume_writing(self) -> None:
        self.calls.append(("resume_writing", None))

    def __getattr__(self, name: str) -> Any:
        return lambda argument: self.calls.append((name, argument))


def test_everything_is_passed_on() -> None:
    heard = Heard()
    protocol = ConnectionProtocol(cast(Any, heard))
    transport, error = asyncio.Transport(), OSError()
    protocol.connection_made(transport)
    assert protocol.get_buffer(-1) is heard.buffer
    protocol.buffer_updated(3)
    protocol.pause_writing()
    protocol.resume_writing()
    assert not protocol.eof_received()
    protocol.connection_lost(error)
    assert heard.calls == [
        ("connection_made", transport),
        ("get_buffer", -1),
        ("buffer_updated", 3),
        ("resume_writing", None),
        ("connection_lost", error),
    ]


def test_asyncio_takes_it_for_a_buffered_protocol() -> None:
    assert isinstance(ConnectionProtocol(cast(Any, Heard())), asyncio.BufferedProtocol)
