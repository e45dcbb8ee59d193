"""SCRAM logins at a pace, a new connection each, from one process. Its input is a JSON object of arguments, as of
`bench.load`. The keys of the user are derived once: what is measured is the broker.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from bench.load import percentile
from millbeck.security.sasl.scram_messages import (
    ScramMechanism,
    client_proof,
    encode,
    parse_server_first,
    salted_password,
)
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.schema import schema_of

MECHANISM = ScramMechanism.SHA_256
FIRST = "n=bench,r=0123456789abcdef"


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: Any, version: int) -> Any:
        api_key = schema_of(type(request)).api_key
        assert api_key is not None
        body = codec.encoder(type(request), version)(request)
        self._writer.write(request_prefix(api_key, version, 1, "bench", len(body)) + body)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        frame = await self._reader.readexactly(size)
        _, position = read_response_header(api_key, version, frame)
        return codec.decoder(APIS[api_key].response, version)(frame, position)[0]

    def close(self) -> None:
        self._writer.close()


class Keys:
    """The salted password, once the first login has told the salt."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._salted: bytes | None = None

    def salted(self, salt: bytes, iterations: int) -> bytes:
        if self._salted is None:
            self._salted = salted_password(MECHANISM, self._password, salt, iterations)
        return self._salted


async def _log_in(peer: Peer, keys: Keys) -> None:
    await peer.ask(SaslHandshakeRequest(MECHANISM.mechanism_name), 1)
    challenge = await peer.ask(SaslAuthenticateRequest(f"n,,{FIRST}".encode()), 2)
    first = parse_server_first(challenge.auth_bytes)
    without_proof = f"c={encode(b'n,,')},r={first.nonce}"
    proof = client_proof(
        MECHANISM, keys.salted(first.salt, first.iterations), f"{FIRST},{first.text},{without_proof}".encode()
    )
    answer = await peer.ask(SaslAuthenticateRequest(f"{without_proof},p={encode(proof)}".encode()), 2)
    assert answer.error_code == 0, answer.error_message


async def _pace(arguments: dict[str, Any]) -> dict[str, Any]:
    keys = Keys(arguments["password"])
    took_ms: list[float] = []

    async def one() -> None:
        began = time.monotonic()
        peer = Peer(*await asyncio.open_connection("127.0.0.1", arguments["port"]))
        await peer.ask(ApiVersionsRequest("bench", "1"), 3)
        if arguments["logs_in"]:
            await _log_in(peer, keys)
        took_ms.append((time.monotonic() - began) * 1000)
        peer.close()

    count = int(arguments["rate"] * arguments["seconds"])
    started = time.monotonic()
    tasks = set()
    for number in range(count):
        await asyncio.sleep(max(0.0, started + number / arguments["rate"] - time.monotonic()))
        tasks.add(asyncio.ensure_future(one()))
    await asyncio.gather(*tasks)
    took_s = time.monotonic() - started
    return {"count": count, "per_second": count / took_s, "p99_ms": percentile(sorted(took_ms), 0.99)}


def main() -> None:
    print(json.dumps(asyncio.run(_pace(json.loads(sys.stdin.readline())))), flush=True)


if __name__ == "__main__":
    main()
