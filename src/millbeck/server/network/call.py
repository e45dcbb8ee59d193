"""One request on its way through the node: where it came from, and the place its reply keeps in the line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millbeck.kernel.environment import Part
from millbeck.kernel.errors import ApiError, UnknownServerError
from millbeck.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType, authorized_operations
from millbeck.security.principal import Principal
from millbeck.server.connection import Connection, release_slices
from millbeck.server.request_metrics import RequestTimes
from millbeck.wire import codec
from millbeck.wire.framing import response_prefix

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.dispatch import Handler


class Call:
    """Completed exactly once, by `complete`, `reply` or `fail`."""

    __slots__ = (
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "handler",
        "is_holding",
        "parts",
        "received_at",
        "request",
        "times",
        "version",
    )

    def __init__(
        self,
        broker: Broker,
        connection: Connection,
        handler: Handler,
        version: int,
        correlation_id: int,
        client_id: str | None,
        received_at: float,
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.handler = handler
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.received_at = received_at
        self.request: Any = None
        self.parts: Sequence[Part] | None = None
        self.times: RequestTimes | None = None
        """Set when this request is one of those whose stages are timed."""
        self.is_holding = False

    def hold(self) -> None:
        """Nothing behind this request is looked at until it is answered."""
        if self.parts is None and not self.is_holding:
            self.is_holding = True
            self.connection.hold()

    def release(self) -> None:
        """Let the connection go on before the answer: only the wait after an append is left."""
        if self.is_holding:
            self.is_holding = False
            self.connection.release_after_turn()
            self.connection.mark_replies()

    def complete(self, parts: Sequence[Part]) -> None:
        """The reply, frame prefix included; an empty one sends nothing (``acks=0``)."""
        assert self.parts is None, "answered twice"
        self.parts = parts
        connection = self.connection
        answered_at = connection.now()
        self.handler.statistics.finished(answered_at - self.received_at)
        if self.times is not None:
            self.times.answered(answered_at)
        if connection.is_lost:
            release_slices(parts)
            return
        if self.is_holding:
            self.is_holding = False
            connection.release_after_turn()
        connection.mark_replies()

    def reply(self, response: Any) -> None:
        """Answer with a message of this API's response class."""
        body = codec.encoder(self.handler.response, self.version)(response)
        self.complete((response_prefix(self.handler.api_key, self.version, self.correlation_id, len(body)), body))

    def fail(self, error: ApiError) -> None:
        """Answer with this API's error reply; an API that has none loses its connection."""
        self.handler.statistics.failed(error.code)
        response = self.handler.error_reply(self.request, self.version, error)
        if response is None:
            self.connection.close(f"{self.handler.name} failed and has no error reply: {error}")
            self.complete(())
        else:
            self.reply(response)

    def fail_unexpectedly(self, error: Exception) -> None:
        """Something raised that should not have: it is logged and counted, and the client learns as much."""
        self.broker.report(error, f"{self.handler.name} version {self.version} from {self.client_host}")
        if self.parts is not None:
            self.connection.close("an unexpected error after the reply")
            return
        try:
            self.fail(UnknownServerError())
        except Exception as second:
            self.broker.report(second, f"the error reply of {self.handler.name} version {self.version}")
            self.connection.close("an unexpected error that has no reply")

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """As Kafka shows it in group descriptions and gives it to authorizers."""
        return f"/{self.connection.peer_host}"

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        """Whether the authorizer lets this client do that."""
        authorizer = self.broker.authorizer
        if type(authorizer) is AllowAll:
            return True
        connection = self.connection
        return authorizer.authorize(connection.principal, connection.peer_host, operation, resource_type, name)

    def may_replicate(self) -> bool:
        """Whether this is another broker: only by the brokers' own listener, so that no client's listener can be used
        to interfere with replication, and only with leave to act for the cluster."""
        listener = self.connection.listener.address.name
        return listener == self.broker.config.inter_broker_listener and self.may(
            Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        """The bit field of what this client may do to a resource; nothing when it may not even describe the cluster."""
        if resource_type is ResourceType.CLUSTER and not self.may(Operation.DESCRIBE, resource_type, CLUSTER_NAME):
            return 0
        connection = self.connection
        return authorized_operations(
            self.broker.authorizer, connection.principal, connection.peer_host, resource_type, name
        )
