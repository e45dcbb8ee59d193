"""Requests to the controller that do not arrive as frames of a connection.

There are two kinds: requests of the broker in the same process, and client requests that another broker forwards in an
envelope (KIP-590). The same handlers serve them; only the reply is returned differently.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millbeck.client.apis import call_of
from millbeck.kernel.errors import ApiError, InvalidRequest, NotController, UnknownServerError
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.server.network.authorization import AuthorizedResource
from millbeck.server.network.route import Route
from millbeck.wire.api_keys import APIS

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.network.connection import Connection


class InnerCall:
    """The part of the interface of `call.Call` that handlers use, for a request that has no frame of a connection."""

    __slots__ = (
        "api_name",
        "broker",
        "client_id",
        "connection",
        "is_trusted",
        "peer_host",
        "principal",
        "request",
        "version",
    )

    def __init__(
        self,
        broker: Broker,
        version: int,
        *,
        principal: Principal,
        peer_host: str,
        is_trusted: bool = False,
        client_id: str | None = None,
        connection: Connection | None = None,
    ) -> None:
        """``connection`` is the one on which the envelope arrived. ``is_trusted``: the request is this node's own, and
        needs no authorization."""
        self.broker = broker
        self.version = version
        self.principal = principal
        self.peer_host = peer_host
        self.client_id = client_id
        self.connection = connection
        self.request: Any = None
        self.is_trusted = is_trusted
        self.api_name = ""

    @property
    def client_host(self) -> str:
        return f"/{self.peer_host}"

    def may(self, operation: Operation, resource_type: ResourceType, name: str, *, is_filter: bool = False) -> bool:
        """As `call.Call.may`, for the client that the envelope names."""
        if self.is_trusted:
            return True
        broker = self.broker
        is_allowed = broker.authorizer.authorize(self.principal, self.peer_host, operation, resource_type, name)
        return broker.decisions.decided(
            self, AuthorizedResource(operation, resource_type, name, is_filter=is_filter), is_allowed=is_allowed
        )

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        return self.broker.decisions.allowed_operations(self, resource_type, name)


class LocalRequests:
    """Serves inner calls with the handlers of the controller listener."""

    def __init__(self, broker: Broker, routes: Sequence[Route]) -> None:
        self._broker = broker
        self._routes = {route.api_key: route for route in routes}

    def route(self, api_key: int) -> Route | None:
        return self._routes.get(api_key)

    async def request(self, message: object) -> Any:
        """Answer a request of this node's own."""
        api = call_of(type(message))
        route = self.route(api.key)
        assert route is not None, f"{api} is not served by controllers"
        principal = self._broker.security.controllers.principal
        call = InnerCall(self._broker, route.max_version, principal=principal, peer_host="127.0.0.1", is_trusted=True)
        return await self.answer(route, call, message)

    async def answer(self, route: Route, call: InnerCall, request: Any) -> Any:
        """Run the handler and return its response, an error response included.

        Raises `NotController`, so that the caller can look for the active controller, and `InvalidRequest` when the API
        has no error reply.
        """
        call.request = request
        call.api_name = APIS[route.api_key].name
        try:
            answer = route.run(call, request)
            return await answer if inspect.isawaitable(answer) else answer
        except NotController:
            raise
        except ApiError as error:
            return self._refusal(route, call, error)
        except Exception as error:
            self._broker.report(error, f"API {route.api_key} version {call.version} from {call.client_host}")
            return self._refusal(route, call, UnknownServerError())

    def _refusal(self, route: Route, call: InnerCall, error: ApiError) -> Any:
        response = route.error_reply(call.request, call.version, error)
        if response is None:
            raise InvalidRequest(f"API {route.api_key} has no error reply: {error}")
        return response
