"""One request being handled: its connection, its version and client, and the reply in the connection's queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millbeck.kernel.environment import Part
from millbeck.kernel.errors import ApiError, UnknownServerError
from millbeck.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.server.network.authorization import AuthorizedResource
from millbeck.server.network.connection import Connection, PendingReply, release_slices
from millbeck.wire import codec
from millbeck.wire.framing import response_prefix

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.network.route import Handler


class Call(PendingReply):
    """A request in flight, completed exactly once by `complete`, `reply` or `fail`."""

    __slots__ = (
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "handler",
        "is_holding",
        "received_at",
        "request",
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
        self.parts = None
        self.times = None
        self.is_holding = False

    def hold(self) -> None:
        """Handle no further request of this connection until this one is answered."""
        if self.parts is None and not self.is_holding:
            self.is_holding = True
            self.connection.hold()

    def release(self) -> None:
        """Let the connection handle further requests before this one is answered, because it only waits for the
        replicas after an append."""
        if self.is_holding:
            self.is_holding = False
            self.connection.release_after_turn()
            self.connection.mark_replies()

    def complete(self, parts: Sequence[Part]) -> None:
        """Complete the call with the encoded reply, frame prefix included; empty parts send nothing (``acks=0``)."""
        assert self.parts is None, "the call was completed twice"
        self.parts = parts
        connection = self.connection
        answered_at = connection.now()
        if self.times is not None:
            self.times.answered(answered_at)
        if connection.is_lost:
            release_slices(parts)
        else:
            if self.is_holding:
                self.is_holding = False
                connection.release_after_turn()
            connection.mark_replies()
        statistics = self.handler.statistics
        statistics.requests.value += 1
        statistics.times.record((answered_at - self.received_at) * 1000)

    def reply(self, response: Any) -> None:
        """Answer with a message of this API's response class; nothing is raised.

        A response that cannot be encoded is answered with UNKNOWN_SERVER_ERROR. Replies are also sent from loops over
        many requests, when records are committed or a group has joined, and one must not stop the others.
        """
        try:
            self._send(response)
        except Exception as error:
            self.fail_unexpectedly(error)

    def _send(self, response: Any) -> None:
        quotas = self.broker.quotas
        wait_ms = 0
        if quotas is not None:
            wait_ms = max(quotas.request_wait_ms(self), getattr(response, "throttle_time_ms", 0))
            if wait_ms:
                response.throttle_time_ms = wait_ms
        body = codec.encoder(self.handler.response, self.version)(response)
        self.complete((response_prefix(self.handler.api_key, self.version, self.correlation_id, len(body)), body))
        if quotas is not None and wait_ms:
            quotas.mute(self.connection, wait_ms)

    def reply_encoded(self, body: bytes, *, throttled_from: int = 0) -> None:
        """Answer with an encoded response, which begins with the throttle time in versions from ``throttled_from``."""
        quotas = self.broker.quotas
        wait_ms = 0 if quotas is None else quotas.request_wait_ms(self)
        if wait_ms and self.version >= throttled_from:
            body = wait_ms.to_bytes(4, "big") + body[4:]
        self.complete((response_prefix(self.handler.api_key, self.version, self.correlation_id, len(body)), body))
        if quotas is not None and wait_ms:
            quotas.mute(self.connection, wait_ms)

    def fail(self, error: ApiError) -> None:
        """Answer with this API's error reply; close the connection if the API has none. Nothing is raised."""
        try:
            self._refuse(error)
        except Exception as second:
            self._give_up(second)

    def _refuse(self, error: ApiError) -> None:
        self.handler.statistics.failed(error.code)
        response = self.handler.error_reply(self.request, self.version, error)
        if response is None:
            self.connection.close(f"{self.handler.name} failed and has no error reply: {error}")
            self.complete(())
        else:
            self._send(response)

    def _give_up(self, error: Exception) -> None:
        self.broker.report(error, f"the error reply of {self.handler.name} version {self.version}")
        self.connection.close("an unexpected error that has no reply")

    def fail_unexpectedly(self, error: Exception) -> None:
        """Handle an unexpected exception: log and count it, and answer UNKNOWN_SERVER_ERROR."""
        self.broker.report(error, f"{self.handler.name} version {self.version} from {self.client_host}")
        if self.parts is not None:
            self.connection.close("an unexpected error after the reply")
            return
        self.fail(UnknownServerError())

    @property
    def principal(self) -> Principal:
        return self.connection.principal

    @property
    def client_host(self) -> str:
        """The client's address with a leading slash, as Kafka shows it in group descriptions and passes it to
        authorizers."""
        return f"/{self.connection.peer_host}"

    @property
    def peer_host(self) -> str:
        return self.connection.peer_host

    @property
    def api_name(self) -> str:
        return self.handler.name

    def may(self, operation: Operation, resource_type: ResourceType, name: str, *, is_filter: bool = False) -> bool:
        """Whether the authorizer allows this client the operation on the resource.

        ``is_filter``: the client did not ask for this resource; what it may not see is left out of the response, and
        a refusal is not logged.
        """
        broker = self.broker
        authorizer = broker.authorizer
        if type(authorizer) is AllowAll:
            return True
        connection = self.connection
        is_allowed = authorizer.authorize(connection.principal, connection.peer_host, operation, resource_type, name)
        if is_allowed and not broker.decisions.logs_allowed:
            return True
        return broker.decisions.decided(
            self, AuthorizedResource(operation, resource_type, name, is_filter=is_filter), is_allowed=is_allowed
        )

    def may_any(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether the client is allowed the operation on at least one resource of the type."""
        return self.broker.decisions.is_any_allowed(self, operation, resource_type)

    def is_cluster_action_allowed(self) -> bool:
        """Whether the request comes from another broker: on a listener of brokers, and with CLUSTER_ACTION allowed.
        Other listeners are refused so that clients cannot interfere with replication."""
        listener = self.connection.listener.address.name
        return listener in self.broker.config.listeners_of_brokers and self.may(
            Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        """The bit field of operations this client may do on a resource; 0 for the cluster if it may not describe it."""
        return self.broker.decisions.allowed_operations(self, resource_type, name)
