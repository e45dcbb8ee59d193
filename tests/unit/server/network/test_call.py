"""A call is answered once, holds its connection while it must, and speaks for its client to the authorizer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from millbeck.kernel.environment import FileSlice
from millbeck.kernel.errors import InvalidRequest, UnknownServerError
from millbeck.kernel.metrics import Registry
from millbeck.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType
from millbeck.security.principal import ANONYMOUS
from millbeck.server.network.authorization import Authorization
from millbeck.server.network.call import Call
from millbeck.server.network.request_metrics import RequestMetrics, RequestStatistics
from millbeck.wire.errors import EncodeError
from millbeck.wire.messages.classic_groups import HeartbeatResponse
from tests.unit.server.harness.client_requests import Denies
from tests.unit.server.harness.method_patches import needs_sources

pytestmark = needs_sources


class Statistics(RequestStatistics):
    def __init__(self) -> None:
        super().__init__("Heartbeat", RequestMetrics(Registry()))
        self.errors: list[int] = []

    def failed(self, code: int) -> None:
        self.errors.append(code)


class Handler:
    api_key = 12
    name = "Heartbeat"
    response = HeartbeatResponse

    def __init__(self) -> None:
        self.statistics = Statistics()
        self.error_reply: Any = lambda request, version, error: HeartbeatResponse(error_code=error.code)


class Connection:
    """Stands for a connection and its listener."""

    def __init__(self) -> None:
        self.listener = self
        self.is_lost = False
        self.is_held = False
        self.marks = 0
        self.closed: list[str] = []
        self.peer_host = "10.1.2.3"
        self.principal = ANONYMOUS

    def now(self) -> float:
        return 12.5

    def hold(self) -> None:
        self.is_held = True

    def release_after_turn(self) -> None:
        self.is_held = False

    def mark_replies(self) -> None:
        self.marks += 1

    def close(self, reason: str) -> None:
        self.closed.append(reason)


class Broker:
    def __init__(self) -> None:
        self.authorizer: Any = AllowAll()
        self.quotas = None
        self.audit = None
        self.decisions = Authorization(cast(Any, self), is_dry_run=False)
        self.reported: list[tuple[Exception, str]] = []

    def report(self, error: Exception, where: str = "") -> None:
        self.reported.append((error, where))


class World:
    def __init__(self) -> None:
        self.broker, self.connection, self.handler = Broker(), Connection(), Handler()
        self.call = Call(cast(Any, self.broker), cast(Any, self.connection), cast(Any, self.handler), 3, 77, "me", 12.0)


def test_a_call_is_answered_exactly_once() -> None:
    world = World()
    world.call.reply(HeartbeatResponse(error_code=27))
    assert world.call.parts == (b"\x00\x00\x00\x0a\x00\x00\x00\x4d", b"\x00\x00\x00\x00\x00\x1b")
    assert world.connection.marks == 1
    assert world.handler.statistics.times.total == 500
    with pytest.raises(AssertionError):
        world.call.complete((b"again",))


def test_holding_ends_with_the_answer_or_before_it() -> None:
    world = World()
    world.call.hold()
    world.call.hold()
    assert world.connection.is_held
    world.call.complete((b"x",))
    assert not world.connection.is_held
    world.call.hold()
    assert not world.connection.is_held
    other = World()
    other.call.hold()
    other.call.release()
    assert (other.connection.is_held, other.connection.marks, other.call.parts) == (False, 1, None)
    other.call.release()
    assert other.connection.marks == 1


def test_an_answer_to_nobody_gives_its_slices_back() -> None:
    world = World()
    world.connection.is_lost = True
    released: list[int] = []
    world.call.complete((b"head", FileSlice(cast(Any, None), 0, 5, lambda: released.append(1))))
    assert released == [1]
    assert world.connection.marks == 0


def test_a_refusal_is_the_apis_error_reply_or_the_end_of_the_connection() -> None:
    world = World()
    world.call.fail(InvalidRequest("no"))
    assert world.handler.statistics.errors == [InvalidRequest.code]
    assert world.connection.closed == []
    silent = World()
    silent.handler.error_reply = lambda request, version, error: None
    silent.call.fail(InvalidRequest("no"))
    assert silent.call.parts == ()
    assert len(silent.connection.closed) == 1


def test_the_unexpected_is_reported_and_answered_even_when_the_answer_fails_too() -> None:
    world = World()
    world.call.fail_unexpectedly(ZeroDivisionError())
    assert world.handler.statistics.errors == [UnknownServerError.code]
    assert [where for _, where in world.broker.reported] == ["Heartbeat version 3 from /10.1.2.3"]
    world.call.fail_unexpectedly(ZeroDivisionError())
    assert len(world.connection.closed) == 1

    broken = World()
    broken.handler.error_reply = lambda request, version, error: 1 // 0
    broken.call.fail_unexpectedly(KeyError())
    assert [type(error) for error, _ in broken.broker.reported] == [KeyError, ZeroDivisionError]
    assert len(broken.connection.closed) == 1


def test_an_answer_that_cannot_be_encoded_is_an_unexpected_error_of_its_request_alone() -> None:
    world = World()
    world.call.reply(HeartbeatResponse(error_code=2**15))
    assert world.call.parts == (b"\x00\x00\x00\x0a\x00\x00\x00\x4d", b"\x00\x00\x00\x00\xff\xff")
    assert [type(error) for error, _ in world.broker.reported] == [EncodeError]
    assert world.connection.closed == []

    broken = World()
    broken.handler.error_reply = lambda request, version, error: HeartbeatResponse(error_code=2**15)
    broken.call.fail(InvalidRequest("no"))
    assert [type(error) for error, _ in broken.broker.reported] == [EncodeError]
    assert len(broken.connection.closed) == 1


def test_the_authorizer_is_asked_about_the_clients_address() -> None:
    world = World()
    assert world.call.client_host == "/10.1.2.3"
    assert world.call.principal is ANONYMOUS
    assert world.call.may(Operation.READ, ResourceType.TOPIC, "t")
    authorizer = Denies(lambda operation, kind, name: operation is Operation.WRITE)
    world.broker.authorizer = authorizer
    assert world.call.may(Operation.READ, ResourceType.TOPIC, "t")
    assert not world.call.may(Operation.WRITE, ResourceType.TOPIC, "t")
    bits = world.call.authorized_operations(ResourceType.TOPIC, "t")
    assert bits & (1 << Operation.READ)
    assert not bits & (1 << Operation.WRITE)
    assert set(authorizer.hosts) == {"10.1.2.3"}
    world.broker.authorizer = Denies(lambda operation, kind, name: operation is Operation.DESCRIBE)
    assert world.call.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME) == 0
    assert world.call.authorized_operations(ResourceType.TOPIC, "t") != 0
