"""Fetches the identity providers' keys, by which token signatures are verified, and refreshes them while the node runs.

`security.oauth.key_refresh` decides when to fetch. All listeners with the same settings share one `ProviderKeys`, and
connections whose tokens wait for keys share its fetch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Final

from millbeck.client.http import BODY_BYTES_MAX, HttpFailed, HttpLimits, http_request
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.whole_file import read_whole_file
from millbeck.security.oauth.key_refresh import KeyRefresh
from millbeck.security.oauth.keys import KeySet, parse_key_set

if TYPE_CHECKING:
    from millbeck.kernel.tls import TlsSource
    from millbeck.server.broker import Broker
    from millbeck.server.config.listener_oauth import KeyEndpoint

FILE_LOOKED_AT_MS: Final = 10_000
"""The interval between reads of a key file, unless ``sasl.oauthbearer.jwks.endpoint.refresh.ms`` is less."""
_OK: Final = 200

log = logging.getLogger(__name__)


class FetchFailed(Exception):
    """The keys could not be fetched; the message is a clause that fits after a colon, without fetched content."""


class ProviderKeys:
    """The keys of one provider or file."""

    def __init__(self, broker: Broker, endpoint: KeyEndpoint) -> None:
        refresh_ms = endpoint.refresh_ms
        if endpoint.location.path is not None:
            refresh_ms = min(refresh_ms, FILE_LOOKED_AT_MS)
        self.refresh = KeyRefresh(
            refresh_ms=refresh_ms, backoff_ms=endpoint.backoff_ms, backoff_ms_max=endpoint.backoff_ms_max
        )
        self.address = endpoint.location.text
        self._broker = broker
        self._endpoint = endpoint
        self._tls = _tls_of(broker, endpoint)
        self._fetching: asyncio.Future[None] | None = None
        self._wanted = asyncio.Event()
        self._last_error = ""

    @property
    def known(self) -> KeySet | None:
        return self.refresh.keys

    def fetch_for(self, key_id: str | None) -> Awaitable[None] | None:
        if self._fetching is None:
            if not self.refresh.is_worth_a_fetch(key_id, self._now_ms()):
                return None
            self._begin()
        return self._fetching

    def want(self) -> None:
        """Request a fetch now."""
        self._wanted.set()

    async def keep_fresh(self) -> None:
        """Fetch the keys on schedule; runs until cancelled."""
        while True:
            self._wanted.clear()
            self._begin()
            assert self._fetching is not None
            await asyncio.shield(self._fetching)
            while (delay_ms := self.refresh.due_ms - self._now_ms()) > 0:
                try:
                    async with asyncio.timeout(delay_ms / 1000):
                        await self._wanted.wait()
                except TimeoutError:
                    continue  # another fetch may have put it off
                break

    def _begin(self) -> None:
        """Start a fetch, unless one is in progress."""
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_future()
            self._broker.spawn(self._fetch(self._fetching))

    async def _fetch(self, done: asyncio.Future[None]) -> None:
        try:
            keys = await self._fetched()
        except Exception as error:  # whatever is wrong with the other side, the keys so far stay
            self.refresh.failed(self._now_ms())
            reason = str(error) if isinstance(error, FetchFailed) else repr(error)
            kept = "; the previous keys stay in use" if self.known is not None else ": tokens cannot be verified"
            # Logged once, not at each attempt.
            level = logging.DEBUG if reason == self._last_error else logging.ERROR
            self._last_error = reason
            log.log(level, "no keys from sasl.oauthbearer.jwks.endpoint.url=%s: %s%s", self.address, reason, kept)
        else:
            self._report(keys)
            self._last_error = ""
            self.refresh.fetched(keys, self._now_ms())
        finally:
            self._fetching = None
            if not done.done():
                done.set_result(None)

    async def _fetched(self) -> KeySet:
        endpoint = self._endpoint
        if endpoint.location.path is not None:
            data = await self._broker.in_thread(self._read_file, endpoint.location.path)
        else:
            limits = HttpLimits(connect_s=endpoint.connect_timeout_ms / 1000, answer_s=endpoint.read_timeout_ms / 1000)
            try:
                answer = await http_request(
                    self._broker.environment.network, endpoint.location, tls=self._tls, limits=limits
                )
            except HttpFailed as error:
                raise FetchFailed(str(error)) from error
            if answer.status != _OK:
                raise FetchFailed(f"the answer has status {answer.status}")
            data = answer.body
        try:
            return await self._broker.in_thread(parse_key_set, data)
        except ValueError as error:
            raise FetchFailed(str(error)) from error

    def _read_file(self, path: str) -> bytes:
        try:
            return read_whole_file(self._broker.environment.files, path, bytes_max=BODY_BYTES_MAX)
        except OSError as error:
            raise FetchFailed(f"the file cannot be read: {error.strerror or error}") from error

    def _report(self, keys: KeySet) -> None:
        before = [] if self.known is None else [key.key_id for key in self.known.keys]
        now = [key.key_id for key in keys.keys]
        if now != before:
            shown = ", ".join(ascii(key_id) for key_id in now[:10])
            log.info("%d keys from %s, %d ignored: %s", len(now), self.address, keys.ignored, shown)

    def _now_ms(self) -> int:
        return int(self._broker.environment.clock.monotonic() * 1000)


class TokenKeys:
    """The keys of all providers of a node."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_endpoint: dict[KeyEndpoint, ProviderKeys] = {}

    def __iter__(self) -> Iterator[ProviderKeys]:
        return iter(self._by_endpoint.values())

    def of(self, endpoint: KeyEndpoint) -> ProviderKeys:
        """The keys of a provider, which are refreshed from now on. Raises `InvalidConfig` if the settings are not
        usable."""
        keys = self._by_endpoint.get(endpoint)
        if keys is None:
            keys = self._by_endpoint[endpoint] = ProviderKeys(self._broker, endpoint)
            self._broker.spawn(keys.keep_fresh())
        return keys

    def want(self) -> None:
        for keys in self:
            keys.want()


def _tls_of(broker: Broker, endpoint: KeyEndpoint) -> TlsSource | None:
    if not endpoint.location.is_encrypted:
        return None
    from millbeck.client.tls import client_tls
    from millbeck.client.tls_options import ClientTlsOptions
    from millbeck.kernel.options import ConfigLayers

    known = {declared.name for declared in ClientTlsOptions.options}
    unknown = [name for name, _ in endpoint.tls if name not in known]
    if unknown:
        raise InvalidConfig(f"sasl.jaas.config: {unknown[0]} is not a setting of TLS here")
    return client_tls(ClientTlsOptions.resolve(ConfigLayers(static=dict(endpoint.tls))), broker.environment)
