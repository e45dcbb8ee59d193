"""A seeded run of one node whose clients log in with tokens: valid ones, and every kind of invalid one.

Clients log in, send requests, re-authenticate with other tokens, and send nothing for longer than their sessions last,
while the identity provider's keys change. The run checks Q1: no request is answered before a login or after the end of
a session; a token that is expired, forged or signed with a withdrawn key starts no session; no client gets another
client's principal.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from random import Random
from typing import Any, Final, cast

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.security.oauth.jwt import encoded, unsigned_text
from millbeck.security.sasl.oauthbearer import OauthClient
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.messages.metadata import MetadataRequest

SESSIONS: Final = "Q1 sessions"
VACUOUS: Final = "vacuous"
LIMIT_SECONDS: Final = 2000.0
CLIENTS: Final = 6
STEPS: Final = 60
HOST: Final = "n1"
KEYS_PATH: Final = "/keys.json"
SETTINGS: Final = {
    "log.dirs": "/data",
    "listeners": "SASL_PLAINTEXT://:9092",
    "metrics.http.port": "0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": f"file://{KEYS_PATH}",
    "sasl.oauthbearer.clock.skew.seconds": "0",
    "sasl.oauthbearer.expected.issuer": "https://idp",
    "sasl.oauthbearer.expected.audience": "kafka",
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": "2000",
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "200",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"file://{KEYS_PATH}",
}
WRONG_KINDS: Final = ("expired", "forged", "withdrawn", "other issuer", "other audience", "unsecured")
MALLORY: Final = "mallory"
"""The subject of every invalid token."""
_WITHDRAWN_AFTER_S: Final = 5.0
"""A withdrawn key is gone from the node by then: its file is read every two seconds."""


class Issuer:
    """An identity provider whose keys are derived from numbers, so that runs are reproducible."""

    def __init__(self) -> None:
        self.current = 0

    def key_set(self) -> bytes:
        return json.dumps({"keys": [_key(self.current).as_dict(private=False)]}).encode()

    def token(self, subject: str, now_ms: int, lifetime_s: int, kind: str = "right") -> str:
        number = {"forged": -1, "withdrawn": self.current - 2}.get(kind, self.current)
        # A forged token names a key that exists.
        named = self.current if kind == "forged" else number
        now_s = now_ms // 1000
        claims = {
            "sub": subject,
            "iss": "https://evil" if kind == "other issuer" else "https://idp",
            "aud": "others" if kind == "other audience" else "kafka",
            "iat": now_s - 100,
            "exp": now_s - 1 if kind == "expired" else now_s + lifetime_s,
        }
        if kind == "unsecured":
            return unsigned_text({"alg": "none"}, claims) + "."
        text = unsigned_text({"alg": "EdDSA", "kid": f"key {named}"}, claims)
        return f"{text}.{encoded(_key(number).get_op_key('sign').sign(text.encode()))}"


def _key(number: int) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from joserfc.jwk import OKPKey

    seed = (number + 1000).to_bytes(32, "big")
    return OKPKey.import_key(cast(Any, Ed25519PrivateKey.from_private_bytes(seed)), {"kid": f"key {number}"})


@dataclass(slots=True)
class Seen:
    """Counts of the checks: a run with too few proves nothing."""

    served: int = 0
    ended: int = 0
    refused: int = 0
    renewed: int = 0


class SessionsRun:
    def __init__(self, seed: int) -> None:
        self.seen = Seen()
        self._world = World(seed)
        self._dice = stream(seed, "sessions run")
        self._issuer = Issuer()
        self._node: Node | None = None
        self._anomalies: list[Anomaly] = []

    def run(self) -> list[Anomaly]:
        with self._world as world:
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        seen = self.seen
        if min(seen.served, seen.refused) < 50 or min(seen.ended, seen.renewed) < 3:
            self._anomalies.append(Anomaly(VACUOUS, str(seen)))
        return self._anomalies

    async def _main(self, environment: Environment) -> None:
        config = NodeConfig(SETTINGS)
        self._publish(environment)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        self._node = node
        await node.failed

    def _publish(self, environment: Environment) -> None:
        file = environment.files.open(KEYS_PATH, OpenMode.WRITE)
        file.truncate(0)
        file.write([self._issuer.key_set()], 0)
        file.close()

    async def _whole(self, environment: Environment) -> None:
        self._world.node(HOST).start(self._main)
        while self._node is None:
            await asyncio.sleep(0.01)
        changing = asyncio.ensure_future(self._change_keys(self._node.environment))
        dice = [Random(self._dice.random()) for _ in range(CLIENTS)]
        await asyncio.gather(*(_Client(self, environment, f"user {n}", dice[n]).work() for n in range(CLIENTS)))
        changing.cancel()
        if self._node.broker.unexpected_errors:
            self.found("the node reported an unexpected error")

    async def _change_keys(self, environment: Environment) -> None:
        while True:
            await asyncio.sleep(self._dice.uniform(_WITHDRAWN_AFTER_S, 20))
            self._issuer.current += 1
            self._publish(environment)

    def found(self, detail: str) -> None:
        self._anomalies.append(Anomaly(SESSIONS, detail))

    def check_principals(self) -> None:
        assert self._node is not None
        for listener in self._node.listeners:
            for connection in listener.connections.values():
                if connection.principal.name == MALLORY:
                    self.found(f"a wrong token made a session of {connection.principal}")

    def token(self, subject: str, now_ms: int, lifetime_s: int, kind: str = "right") -> str:
        return self._issuer.token(subject, now_ms, lifetime_s, kind)


class _Client:
    """One user, one connection at a time."""

    def __init__(self, run: SessionsRun, environment: Environment, name: str, dice: Random) -> None:
        self._run = run
        self._environment = environment
        self._name = name
        self._dice = dice
        self._wire: WireClient | None = None
        self._ends_s: float | None = None
        """The time at which the session must have ended; None before a login."""

    async def work(self) -> None:
        for _ in range(STEPS):
            await asyncio.sleep(self._dice.uniform(0.1, 4))
            try:
                await self._step()
            except (ConnectionError, OSError):
                self._wire, self._ends_s = None, None
            self._run.check_principals()

    async def _step(self) -> None:
        if self._wire is None:
            _, wire = await self._environment.network.connect(WireClient, host=HOST, port=9092)
            self._wire, self._ends_s = cast(WireClient, wire), None
        if self._ends_s is None and self._dice.random() < 0.9:
            kind = self._dice.choice(WRONG_KINDS) if self._dice.random() < 0.4 else "right"
            await self._log_in(MALLORY if kind != "right" else self._name, kind)
        elif self._dice.random() < 0.3:
            kind = self._dice.choice(("right", "right", "somebody else", *WRONG_KINDS))
            subject = {"right": self._name, "somebody else": "somebody else"}.get(kind, MALLORY)
            await self._log_in(subject, kind)
        else:
            await self._ask()

    async def _ask(self) -> None:
        assert self._wire is not None
        sent_s, ends_s = self._now_s(), self._ends_s
        try:
            await self._wire.ask(MetadataRequest([]), 12)
        except ConnectionError:
            self._run.seen.ended += 1
            raise
        if ends_s is None:
            self._run.found(f"{self._name} was answered without a login")
        elif sent_s >= ends_s:
            self._run.found(f"{self._name} was answered {sent_s - ends_s:.3f} s after its session")
        else:
            self._run.seen.served += 1

    async def _log_in(self, subject: str, kind: str) -> None:
        assert self._wire is not None
        was_logged_in = self._ends_s is not None
        token = self._run.token(subject, self._environment.clock.wall_ms(), self._dice.randint(2, 12), kind)
        try:
            shaken = await self._wire.ask(SaslHandshakeRequest("OAUTHBEARER"), 1)
            if shaken.error_code:
                return
            answer = await self._wire.ask(SaslAuthenticateRequest(OauthClient(token, {}).begin()), 2)
        except ConnectionError:
            if kind != "right":
                self._run.seen.refused += 1
            raise
        if answer.error_code or answer.auth_bytes:
            self._run.seen.refused += kind != "right"
            self._wire.close()
            raise ConnectionResetError
        if kind != "right":
            self._run.found(f"a token that is {kind} was accepted from {self._name}")
        self._run.seen.renewed += was_logged_in
        self._ends_s = self._now_s() + answer.session_lifetime_ms / 1000

    def _now_s(self) -> float:
        return self._environment.clock.monotonic()
