"""Requests to the controller that have no frame of their own.

There are two kinds: what the broker in the same process has to say to the controller, and what another broker passes on
for its client in an envelope. Handlers serve them as they serve any call; only the reply goes another way.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from millbeck.kernel.errors import ApiError, InvalidRequest, NotController, UnknownServerError
from millbeck.security.authorizer import CLUSTER_NAME, Authorizer, Operation, ResourceType, authorized_operations
from millbeck.security.principal import Principal
from millbeck.server.dispatch import Route

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.connection import Connection


class InnerCall:
    """What handlers ask of a `call.Call`, for a request that came otherwise."""

    __slots__ = ("_authorizer", "broker", "client_id", "connection", "peer_host", "principal", "request", "version")

    def __init__(
        self,
        broker: Broker,
        version: int,
        *,
        principal: Principal,
        peer_host: str,
        authorizer: Authorizer,
        client_id: str | None = None,
        connection: Connection | None = None,
    ) -> None:
        """``connection`` is the one the envelope came by."""
        self.broker = broker
        self.version = version
        self.principal = principal
        self.peer_host = peer_host
        self.client_id = client_id
        self.connection = connection
        self.request: Any = None
        self._authorizer = authorizer

    @property
    def client_host(self) -> str:
        return f"/{self.peer_host}"

    def may(self, operation: Operation, resource_type: ResourceType, name: str) -> bool:
        return self._authorizer.authorize(self.principal, self.peer_host, operation, resource_type, name)

    def authorized_operations(self, resource_type: ResourceType, name: str) -> int:
        if resource_type is ResourceType.CLUSTER and not self.may(Operation.DESCRIBE, resource_type, CLUSTER_NAME):
            return 0
        return authorized_operations(self._authorizer, self.principal, self.peer_host, resource_type, name)


class InnerRequests:
    """Serves inner calls with the handlers of the controllers' listener."""

    def __init__(self, broker: Broker, routes: Sequence[Route]) -> None:
        self._broker = broker
        self._routes = {route.api_key: route for route in routes}

    def route(self, api_key: int) -> Route | None:
        return self._routes.get(api_key)

    async def answer(self, route: Route, call: InnerCall, request: Any) -> Any:
        """The response, errors that it can tell of included.

        Raises `NotController`, because whoever asks will want to look for the one that is; and `InvalidRequest` for an
        API that cannot tell of an error.
        """
        call.request = request
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
