"""Answers to requests, and what has to happen before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from millbeck.pipeline.connect.errors import ConnectError
from millbeck.pipeline.connect.state.configs import StateRecord, TaskId
from millbeck.pipeline.connect.state.offsets import OffsetRecord


class NoBody:
    """An answer without a body."""


NO_BODY = NoBody()


class GroupOffset(NamedTuple):
    """A position of a sink's consumer group; an offset of None resets it."""

    topic: str
    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An answer, and what it depends on: it is sent when all of this is written and read back.

    What only a leader may write (``configs``) is why a request may have to be forwarded to it.
    """

    status: int = 200
    body: Any = NO_BODY
    location: str | None = None
    configs: tuple[StateRecord, ...] = ()
    statuses: tuple[StateRecord, ...] = ()
    source_offsets: tuple[OffsetRecord, ...] = ()
    group: str | None = None
    """The consumer group whose offsets are altered, or deleted when there are none."""
    group_offsets: tuple[GroupOffset, ...] | None = None
    connector: str = ""
    """The connector whose offsets are altered."""
    restarted_task: TaskId | None = None


class RestError(ConnectError):
    """A request that is answered with an error: the status, and Kafka's ``error_code`` and ``message``."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def decision(self) -> Decision:
        return Decision(status=self.status, body={"error_code": self.status, "message": str(self)})


def bad_request(message: str) -> RestError:
    return RestError(400, message)


def not_found(message: str) -> RestError:
    return RestError(404, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request without its connection. The path is as it was sent, with percent signs; ``body`` is parsed JSON, None
    when there is none.
    """

    method: str
    path: str
    query: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    body: Any = None

    def flag(self, name: str) -> bool:
        """A boolean of the query; anything but true is false, as in Java."""
        return self.query.get(name, ("",))[-1].strip().lower() == "true"
