"""The tokens of one client: fetched when a connection needs one, shared by its connections, renewed before they expire.

When the identity provider is unavailable, the current token is used until it expires; then connections fail, and the
client retries as if the broker were unreachable. When the provider refuses the client, there are no retries.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from millbeck.client.backoff import Backoff
from millbeck.client.errors import ConnectFailed
from millbeck.client.http import BODY_BYTES_MAX, HttpFailed, http_request
from millbeck.client.oauth.settings import AssertionSource, Retriever, TokenSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, SaslAuthenticationFailed
from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.kernel.tls import TlsSource
from millbeck.kernel.whole_file import read_whole_file
from millbeck.security.oauth.assertion import AssertionFailed, signed_assertion, template_of
from millbeck.security.oauth.client_token import ClientToken, read_token
from millbeck.security.oauth.jwt import TokenRefused, unsecured_token
from millbeck.security.oauth.token_request import (
    TokenDenied,
    TokenRequest,
    client_assertion_request,
    jwt_bearer_request,
    secret_request,
    token_of_answer,
)

_CHANCE: Final = 1 << 20

log = logging.getLogger(__name__)


class TokenSource:
    def __init__(self, environment: Environment, settings: TokenSettings) -> None:
        self._environment = environment
        self._settings = settings
        self._token: ClientToken | None = None
        self._refresh_ms = 0
        self._fetching: asyncio.Task[ClientToken] | None = None
        self._failures = 0
        self._failure: ApiError | None = None
        """The last error, until the provider may be contacted again."""
        self._not_before_s = 0.0
        self._backoff = Backoff(environment.randomness, first_ms=settings.backoff_ms, max_ms=settings.backoff_ms_max)
        self._tls: TlsSource | None = None
        if settings.location is not None and settings.location.is_encrypted:
            from millbeck.client.tls import client_tls

            self._tls = client_tls(settings.tls, environment)

    @property
    def subject(self) -> str | None:
        """The subject of the last token; None before the first."""
        return None if self._token is None else self._token.subject

    async def token(self) -> str:
        """A valid token. Raises `ConnectFailed` if there is none at the moment, and `SaslAuthenticationFailed` if a
        retry would not help."""
        now_ms = self._environment.clock.wall_ms()
        current = self._token
        if current is not None and now_ms < self._refresh_ms:
            return current.text
        try:
            return (await self._next()).text
        except (ConnectFailed, SaslAuthenticationFailed) as error:
            if current is None or self._environment.clock.wall_ms() >= current.expires_ms:
                raise
            log.warning("the current token is still used: %s", error.message)
            return current.text

    async def _next(self) -> ClientToken:
        if self._failure is not None and self._environment.clock.monotonic() < self._not_before_s:
            raise type(self._failure)(self._failure.message)
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        # The fetch is shared with other connections, so cancelling this one must not cancel it.
        return await asyncio.shield(self._fetching)

    def _fetched(self, task: asyncio.Task[ClientToken]) -> None:
        self._fetching = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._failure = error if isinstance(error, ApiError) else None
            self._failures += 1
            self._not_before_s = self._environment.clock.monotonic() + self._backoff.delay_s(self._failures)
            return
        self._failures = 0
        self._failure = None
        self._token = task.result()
        chance = self._environment.randomness.below(_CHANCE) / _CHANCE
        now_ms = self._environment.clock.wall_ms()
        self._refresh_ms = self._settings.window.refresh_ms(self._token, now_ms, chance)

    async def _fetch(self) -> ClientToken:
        settings = self._settings
        text = await _RETRIEVE[settings.retriever](self)
        try:
            return read_token(text, settings.subject_claim)
        except TokenRefused as error:
            raise SaslAuthenticationFailed(f"the token for {settings.who} cannot be used: {error}") from error

    # the ways to get a token

    async def _from_file(self) -> str:
        location = self._settings.location
        assert location is not None
        assert location.path is not None
        return (await self._read(location.path)).decode("utf-8", "replace").strip()

    async def _unsecured(self) -> str:
        now_s = self._environment.clock.wall_ms() / 1000
        claims = {**self._settings.claims, "iat": now_s, "exp": now_s + self._settings.lifetime_s}
        return unsecured_token(claims)

    async def _by_client_credentials(self) -> str:
        settings = self._settings
        if settings.assertion is not None:
            assertion = await self._assertion(settings.assertion)
            return await self._ask(client_assertion_request(assertion, settings.client_id, settings.scope))
        assert settings.client_id is not None
        assert settings.client_secret is not None
        request = secret_request(
            settings.client_id, settings.client_secret.reveal(), settings.scope, url_encodes=settings.url_encodes
        )
        return await self._ask(request)

    async def _by_jwt_bearer(self) -> str:
        settings = self._settings
        assert settings.assertion is not None
        return await self._ask(jwt_bearer_request(await self._assertion(settings.assertion), settings.scope))

    async def _ask(self, request: TokenRequest) -> str:
        settings = self._settings
        location = settings.location
        assert location is not None
        try:
            answer = await http_request(
                self._environment.network,
                location,
                tls=self._tls,
                limits=settings.limits,
                form=request.form,
                headers=request.headers,
            )
            return token_of_answer(answer.status, answer.body)
        except HttpFailed as error:
            raise ConnectFailed(f"no token from {location.text}: {error}") from error
        except TokenDenied as error:
            message = f"{location.text} refused a token to {settings.who}: {error}"
            if error.is_final:
                raise SaslAuthenticationFailed(f"{message} (see sasl.oauthbearer.*)") from error
            raise ConnectFailed(message) from error

    async def _assertion(self, source: AssertionSource) -> str:
        if source.file is not None:
            return (await self._read(source.file)).decode("utf-8", "replace").strip()
        key = await self._read(source.key_file)
        try:
            claims = source.claims
            if source.template_file is not None:
                header, fixed = template_of(await self._read(source.template_file))
                claims = replace(claims, header=header, fixed=fixed)
            passphrase = None if source.passphrase is None else source.passphrase.reveal()
            now_ms, token_id = self._environment.clock.wall_ms(), uuid_text(Uuid(self._environment.randomness.uuid()))
            return await self._environment.threads.run(
                lambda: signed_assertion(claims, key, passphrase, now_ms=now_ms, token_id=token_id)
            )
        except AssertionFailed as error:
            raise SaslAuthenticationFailed(f"no assertion from {source.key_file}: {error}") from error

    async def _read(self, path: str) -> bytes:
        try:
            return await self._environment.threads.run(
                lambda: read_whole_file(self._environment.files, path, bytes_max=BODY_BYTES_MAX)
            )
        except OSError as error:
            raise SaslAuthenticationFailed(f"{path} cannot be read: {error.strerror or error}") from error


_RETRIEVE: Final[dict[Retriever, Callable[[TokenSource], Awaitable[str]]]] = {
    Retriever.FILE: TokenSource._from_file,
    Retriever.UNSECURED: TokenSource._unsecured,
    Retriever.CLIENT_CREDENTIALS: TokenSource._by_client_credentials,
    Retriever.JWT_BEARER: TokenSource._by_jwt_bearer,
}
