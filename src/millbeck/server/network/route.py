"""API routes: the declaration of a handler, and the handler of one node with its statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from millbeck.kernel.errors import ApiError
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.request_metrics import RequestStatistics
from millbeck.wire.api_keys import APIS

API_VERSIONS_KEY: Final = 18
TIMED_EVERY: Final = 16
"""One in this many produce and fetch requests has its stages timed."""


@dataclass(frozen=True, slots=True)
class Need:
    """An authorization that a request requires; ``a | b`` means that one of them is enough."""

    operation: Operation
    resource_type: ResourceType
    when: str = ""
    """The condition under which it is required; empty means always."""
    denied: str = ""
    """The error if it is denied; empty means the authorization error of the resource type."""
    alternatives: tuple[Need, ...] = ()

    def __or__(self, other: Need) -> Need:
        return replace(self, alternatives=(*self.alternatives, other))


ErrorReply = Callable[[Any, int, ApiError], Any]
"""``(request or None, version, error) -> response``; None when the API has no error reply."""


class Route:
    """The declaration of a request handler: its API, versions, function and error reply."""

    __slots__ = (
        "advertised_min",
        "api_key",
        "check_client",
        "error_reply",
        "max_version",
        "min_version",
        "needs",
        "reads_frames",
        "run",
    )

    def __init__(
        self,
        api_key: int,
        run: Callable[..., Any],
        *,
        needs: Sequence[Need],
        reads_frames: bool,
        error_reply: ErrorReply,
        max_version: int | None,
        advertised_min: int | None,
        check_client: Callable[[Call], None] | None = None,
    ) -> None:
        """``check_client`` raises `ApiError` for clients that may not send the request whatever their ACLs are, such as
        unauthenticated ones; it is called before a request is forwarded."""
        api = APIS[api_key]
        self.check_client = check_client
        self.needs = tuple(needs)
        self.api_key = api_key
        self.run = run
        self.reads_frames = reads_frames
        self.error_reply = error_reply
        self.min_version = api.min_version
        self.max_version = api.max_version if max_version is None else max_version
        self.advertised_min = self.min_version if advertised_min is None else advertised_min

    def with_unstable_versions(self) -> Route:
        """The same route with all declared versions, unstable ones included."""
        return Route(
            self.api_key,
            self.run,
            needs=self.needs,
            reads_frames=self.reads_frames,
            error_reply=self.error_reply,
            max_version=None,
            advertised_min=self.advertised_min,
            check_client=self.check_client,
        )


def top_level_error(response: type) -> ErrorReply:
    """The error reply of an API whose response has ``error_code`` (and perhaps ``error_message``) at the top."""

    def reply(request: Any, version: int, error: ApiError) -> Any:
        answer = response()
        answer.error_code = error.code
        if hasattr(answer, "error_message"):
            answer.error_message = str(error) or None
        return answer

    return reply


def handles(
    api_key: int,
    *,
    needs: Sequence[Need],
    error_reply: ErrorReply | None = None,
    max_version: int | None = None,
    check_client: Callable[[Call], None] | None = None,
) -> Callable[[Callable[[Call, Any], Any]], Route]:
    """Declare a handler of decoded requests: ``(call, request) -> response``, plain or async.

    ``needs`` lists the authorizations the handler checks; the documentation and ``millbeck acl explain`` are generated
    from it.
    """

    def declare(run: Callable[[Call, Any], Any]) -> Route:
        return Route(
            api_key,
            run,
            needs=needs,
            reads_frames=False,
            error_reply=error_reply or top_level_error(APIS[api_key].response),
            max_version=max_version,
            advertised_min=None,
            check_client=check_client,
        )

    return declare


def handles_frames(
    api_key: int, *, needs: Sequence[Need], error_reply: ErrorReply, advertised_min: int | None = None
) -> Callable[[Callable[[Call, memoryview, int], None]], Route]:
    """Declare a handler that decodes the frame from a position itself and completes the call itself."""

    def declare(run: Callable[[Call, memoryview, int], None]) -> Route:
        return Route(
            api_key,
            run,
            needs=needs,
            reads_frames=True,
            error_reply=error_reply,
            max_version=None,
            advertised_min=advertised_min,
        )

    return declare


class Handler:
    """A route in one node, with its statistics and decoders."""

    __slots__ = (
        "api_key",
        "check_client",
        "decoders",
        "error_reply",
        "is_forwarded",
        "max_version",
        "min_version",
        "name",
        "reads_frames",
        "request",
        "response",
        "run",
        "statistics",
        "timed_every",
        "until_timed",
    )

    def __init__(self, route: Route, statistics: RequestStatistics, *, is_forwarded: bool) -> None:
        api = APIS[route.api_key]
        self.is_forwarded = is_forwarded
        self.api_key = route.api_key
        self.name = api.name
        self.request = api.request
        self.response = api.response
        self.run = route.run
        self.check_client = route.check_client
        self.reads_frames = route.reads_frames
        self.error_reply = route.error_reply
        self.min_version = route.min_version
        self.max_version = route.max_version
        self.statistics = statistics
        # There may be a hundred thousand produce and fetch requests per second: only a sample of them is timed.
        self.timed_every = TIMED_EVERY if route.reads_frames else 1
        self.until_timed = 0
        self.decoders: dict[int, Callable[..., tuple[Any, int]]] = {}
