"""A blocking connection that logs in as a user and asks one request after the other."""

from __future__ import annotations

import socket
import struct
from typing import Any

from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.schema import schema_of

PASSWORD = "secret"
TIMEOUT_S = 30.0


class Asking:
    def __init__(self, port: int, user: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count = 0
        shaken = self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert shaken.error_code == 0, shaken
        token = f"\0{user}\0{PASSWORD}".encode()
        logged_in = self.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert logged_in.error_code == 0, logged_in

    def ask(self, request: Any, version: int) -> Any:
        api_key = schema_of(type(request)).api_key
        assert api_key is not None
        self._count += 1
        body = codec.encoder(type(request), version)(request)
        self._socket.sendall(request_prefix(api_key, version, self._count, "matrix", len(body)) + body)
        (size,) = struct.unpack(">i", self._exactly(4))
        payload = self._exactly(size)
        correlation_id, position = read_response_header(api_key, version, payload)
        assert correlation_id == self._count
        response, _ = codec.decoder(APIS[api_key].response, version)(payload, position)
        return response

    def _exactly(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            chunk = self._socket.recv(size - len(received))
            if not chunk:
                raise ConnectionError("the broker closed the connection")
            received += chunk
        return bytes(received)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Asking:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
