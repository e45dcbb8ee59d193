"""Forwarding: what a client asks of a broker and only the active controller can do goes there in an envelope.

The client's request travels as it came, header and all, together with who the client is and where it called from; the
controller checks the client's rights, not the broker's. What comes back is the client's answer as it is. A client whose
controller is not found in time is told REQUEST_TIMED_OUT.
"""

from __future__ import annotations

from struct import Struct
from typing import Any, Final, TypeVar

from millbeck.client.apis import call_of
from millbeck.kernel.errors import ApiError, UnknownServerError, by_code
from millbeck.security.principal import ANONYMOUS, Principal
from millbeck.security.principal_bytes import encode_principal
from millbeck.server.call import Call
from millbeck.server.controller_channel import ControllerChannel
from millbeck.server.drivers.quorum import QuorumDriver
from millbeck.wire import codec
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

R = TypeVar("R")

FORWARD_SECONDS_MAX: Final = 60.0
LOCAL_ADDRESS: Final = "127.0.0.1"
_LENGTH: Final = Struct(">i")


class Forwarder:
    def __init__(self, quorum: QuorumDriver, channel: ControllerChannel, *, is_controller: bool) -> None:
        self._quorum = quorum
        self._channel = channel
        self._is_controller = is_controller

    @property
    def is_needed(self) -> bool:
        """Whether another node decides; the active controller serves its own clients itself."""
        return not (self._is_controller and self._quorum.is_active)

    async def forward(self, call: Call, frame: bytes) -> None:
        """Have the controller answer a client's call; ``frame`` is the request without its length."""
        try:
            answer = await self._send(frame, call.principal, call.connection.peer_host)
            call.complete((_LENGTH.pack(len(answer)), answer))
        except ApiError as error:
            call.fail(error)
        except Exception as error:
            call.fail_unexpectedly(error)

    async def ask(self, message: object, response: type[R], version: int) -> R:
        """Ask the controller for something in this broker's own name."""
        api = call_of(type(message))
        body = codec.encoder(type(message), version)(message)
        frame = request_prefix(api.key, version, 0, None, len(body)) + body
        answer = await self._send(frame[_LENGTH.size :], ANONYMOUS, LOCAL_ADDRESS)
        _, position = read_response_header(api.key, version, answer)
        decoded: tuple[Any, int] = codec.decoder(response, version)(answer, position)
        return decoded[0]  # type: ignore[no-any-return]

    async def _send(self, frame: bytes, principal: Principal, host: str) -> bytes:
        envelope = EnvelopeRequest(
            request_data=frame,
            request_principal=encode_principal(principal),
            client_host_address=_packed(host),
        )
        answer = await self._channel.request(envelope, EnvelopeResponse, timeout_s=FORWARD_SECONDS_MAX)
        if answer.error_code:
            raise by_code.get(answer.error_code, UnknownServerError)("the controller refused what was forwarded")
        if answer.response_data is None:
            raise UnknownServerError("the controller sent an empty envelope")
        return answer.response_data


def _packed(host: str) -> bytes:
    """An address as its 4 or 16 bytes; the zone of a local IPv6 address means nothing elsewhere."""
    from ipaddress import ip_address

    try:
        return ip_address(host.partition("%")[0]).packed
    except ValueError:
        return ip_address(LOCAL_ADDRESS).packed
