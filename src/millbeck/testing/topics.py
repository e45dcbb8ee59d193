"""Create and delete topics from a fixture, with blocking calls that work inside and outside event loops."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from millbeck.kernel.errors import from_code
from millbeck.wire import codec, framing
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

TIMEOUT_SECONDS: Final = 30.0
CREATE_TOPICS: Final = (19, 7)
DELETE_TOPICS: Final = (20, 6)
"""API keys and versions, which are fixed because the node is of the same release."""
_LENGTH: Final = Struct(">i")


def create_topic(bootstrap: str, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Create a topic. Raises `ApiError` or ``OSError``."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()],
    )
    answer = _ask(bootstrap, CREATE_TOPICS, CreateTopicsRequest(topics=[topic]), CreateTopicsResponse)
    for result in answer.topics:
        if result.error_code:
            raise from_code(result.error_code, result.error_message or "")


def delete_topic(bootstrap: str, name: str) -> None:
    """Delete a topic. Raises `ApiError` or ``OSError``."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=int(TIMEOUT_SECONDS * 1000))
    answer = _ask(bootstrap, DELETE_TOPICS, request, DeleteTopicsResponse)
    for result in answer.responses:
        if result.error_code:
            raise from_code(result.error_code, result.error_message or "")


def _ask(bootstrap: str, api: tuple[int, int], request: object, response: type[Any]) -> Any:
    key, version = api
    body = codec.encoder(type(request), version)(request)
    host, _, port = bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_SECONDS) as connection:
        connection.sendall(framing.request_prefix(key, version, 0, "millbeck-testing", len(body)) + body)
        (size,) = _LENGTH.unpack(_receive(connection, _LENGTH.size))
        frame = _receive(connection, size)
    _, position = framing.read_response_header(key, version, frame)
    answer, _ = codec.decoder(response, version)(frame, position)
    return answer


def _receive(connection: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = connection.recv(size)
        if not part:
            raise ConnectionError("the node closed the connection before it had answered")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
