"""Forward client requests that only the active controller can serve, in an Envelope request (KIP-590).

The envelope carries the client's request unchanged, header included, with the client's principal and address; the
controller authorizes the client, not the broker. The client's response comes back unchanged. If no controller answers
within the request's timeout, or within 30 seconds where it has none, the client gets REQUEST_TIMED_OUT: clients give up
on a connection that is silent for longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from struct import Struct
from typing import Any, Final, TypeVar

from millbeck.kernel.errors import ApiError, NotController, RequestTimedOut, UnknownServerError, by_code
from millbeck.security.principal import Principal
from millbeck.security.principal_bytes import encode_principal
from millbeck.server.metadata.controller_channel import ControllerChannel
from millbeck.server.metadata.quorum_driver import QuorumDriver
from millbeck.server.network.call import Call
from millbeck.server.requests.tls_settings import check_tls_settings
from millbeck.wire.messages.nodes import EnvelopeRequest, EnvelopeResponse, UpdateFeaturesRequest
from millbeck.wire.messages.replicas import ListPartitionReassignmentsRequest

R = TypeVar("R")

DEFAULT_SECONDS: Final = 30.0
SECONDS_MAX: Final = 60.0
LOCAL_ADDRESS: Final = "127.0.0.1"
_LENGTH: Final = Struct(">i")


_ANSWERED_WITHOUT_TIMEOUT: Final = (ListPartitionReassignmentsRequest, UpdateFeaturesRequest)
"""Requests whose timeout Kafka's controller does not read: clients send 0 in it and get their answer."""


def patience_s(request: object) -> float:
    """The time that a client waits for the controller, in seconds; 0 if its timeout is 0, as in Kafka."""
    timeout_ms: int | None = getattr(request, "timeout_ms", None)
    if timeout_ms is None or (timeout_ms <= 0 and isinstance(request, _ANSWERED_WITHOUT_TIMEOUT)):
        return DEFAULT_SECONDS
    return min(max(timeout_ms, 0) / 1000, SECONDS_MAX)


class Forwarder:
    def __init__(self, quorum: QuorumDriver, channel: ControllerChannel, *, is_controller: bool) -> None:
        self._quorum = quorum
        self._channel = channel
        self._is_controller = is_controller

    @property
    def is_needed(self) -> bool:
        """Whether requests must be forwarded: the active controller serves them itself."""
        return not (self._is_controller and self._quorum.is_active)

    def takes(self, request: object) -> bool:
        """Whether `forward` takes this request: another node is the active controller, or the request's timeout is
        0."""
        return self.is_needed or patience_s(request) <= 0

    async def forward(self, call: Call, frame: bytes) -> None:
        """Answer a client's call with the controller's response; ``frame`` is the request without its length prefix."""
        await self._forward(call, frame, patience_s(call.request))

    async def finish(self, call: Call, answer: Awaitable[Any], frame: bytes) -> None:
        """Answer a call with the result of this node as the active controller; if it no longer is, forward to the new
        one."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + patience_s(call.request)
        try:
            async with asyncio.timeout_at(deadline_s):
                response = await answer
            call.reply(response)
        except NotController:
            await self._forward(call, frame, deadline_s - loop.time())
        except TimeoutError:
            call.fail(RequestTimedOut("the change was not committed within the timeout"))
        except ApiError as error:
            call.fail(error)
        except Exception as error:
            call.fail_unexpectedly(error)

    async def _forward(self, call: Call, frame: bytes, timeout_s: float) -> None:
        try:
            broker = call.broker
            await check_tls_settings(call.request, broker.tls, node_id=broker.node_id, may=call.may)
            answer = await self._send(frame, call.principal, call.connection.peer_host, timeout_s)
            call.complete((_LENGTH.pack(len(answer)), answer))
        except ApiError as error:
            call.fail(error)
        except Exception as error:
            call.fail_unexpectedly(error)

    async def ask(self, message: object, response: type[R], *, timeout_s: float) -> R:
        """Send a request to the controller as this broker, without an envelope; raises `ApiError`."""
        return await self._channel.request(message, response, timeout_s=timeout_s)

    async def _send(self, frame: bytes, principal: Principal, host: str, timeout_s: float) -> bytes:
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(principal),
            client_host_address=_packed(host),
        )
        answer = await self._channel.request(envelope, EnvelopeResponse, timeout_s=timeout_s)
        if answer.error_code:
            raise by_code.get(answer.error_code, UnknownServerError)("the controller refused the forwarded request")
        if answer.response_data is None:
            raise UnknownServerError("the controller sent an empty envelope")
        return answer.response_data


def _packed(host: str) -> bytes:
    """An address as its 4 or 16 bytes; the zone of a link-local IPv6 address means nothing on another host."""
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return ip_address(LOCAL_ADDRESS).packed
