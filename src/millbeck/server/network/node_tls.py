"""The TLS contexts of a node: those of its SSL listeners and of its own connections, loaded at start and reloaded while
it runs.

`watch` reloads after a dynamic config change, on SIGHUP, and when the content of a file has changed. The new
certificates are used for new connections if they pass the checks of `tls_renewal`; otherwise the old ones stay in use
and the log says why. Open connections keep their context.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import TlsSource
from millbeck.security.audit.events import AuditKind, AuditTrail, event_of
from millbeck.server.config import NodeConfig

if TYPE_CHECKING:
    from millbeck.server.network.tls import LoadedTls, TlsEndpoint

LISTENER: Final = "listener"
CLIENT: Final = "client"
SOON_DAYS: Final = 30

log = logging.getLogger(__name__)


class NodeTls:
    def __init__(self, config: NodeConfig, environment: Environment) -> None:
        self._config = config
        self._environment = environment
        self._endpoints: dict[tuple[str, str], TlsEndpoint] = {}
        self._wanted = asyncio.Event()
        self._audit: AuditTrail | None = None

    def of_listener(self, name: str) -> TlsEndpoint:
        """The TLS of connections that a listener accepts. Raises `InvalidConfig` if its settings are unusable."""
        return self._endpoint(name, LISTENER)

    def of_peers(self, name: str) -> TlsSource:
        """The TLS of this node's own connections to a listener of that name on other nodes."""
        return self._endpoint(name, CLIENT).context

    def audit_by(self, audit: AuditTrail) -> None:
        """Report logins by certificate, and renewals of certificates, to the audit."""
        self._audit = audit
        for endpoint in self._endpoints.values():
            endpoint.audit = audit

    @property
    def is_used(self) -> bool:
        return bool(self._endpoints)

    @property
    def dynamic(self) -> Mapping[str, str]:
        """The dynamic configs of this node."""
        return self._config.dynamic

    def endpoints(self) -> Iterator[TlsEndpoint]:
        return iter(self._endpoints.values())

    def want_reload(self) -> None:
        """Make `watch` check settings and files for changes now."""
        self._wanted.set()

    async def reload_if_wanted(self) -> None:
        """Reload before a listener opens, because dynamic configs may have changed after its certificate was loaded."""
        if self._wanted.is_set():
            await self.reload()

    async def watch(self) -> None:
        """Reload on request and when a file has changed; runs until cancelled."""
        while True:
            try:
                async with asyncio.timeout(self._config.tls_reload.interval_ms / 1000):
                    await self._wanted.wait()
            except TimeoutError:
                if not await self._environment.threads.run(self._is_any_file_changed):
                    continue
            await self.reload()

    async def check(self, dynamic: Mapping[str, str]) -> None:
        """Raise `InvalidConfig` if with these dynamic configs the certificates in use could not be reloaded."""
        for endpoint in list(self._endpoints.values()):
            load = self._loading(endpoint.name, endpoint.role, dynamic)
            loaded = await self._environment.threads.run(load)
            if not loaded.is_like(endpoint.loaded):
                self._check(endpoint, loaded)

    async def reload(self) -> None:
        """Read certificates and keys again; where they are not usable, the current ones stay in use."""
        self._wanted.clear()
        for endpoint in list(self._endpoints.values()):
            try:
                loaded = await self._environment.threads.run(self._loading(endpoint.name, endpoint.role))
                if loaded.is_like(endpoint.loaded):
                    endpoint.loaded = replace(loaded, context=endpoint.loaded.context)
                    continue
                self._check(endpoint, loaded)
            except Exception as error:  # whatever is wrong with a file, the next look may find it corrected
                endpoint.reload_failures += 1
                reason = error.message if isinstance(error, InvalidConfig) else repr(error)
                if reason != endpoint.last_error:
                    endpoint.last_error = reason
                    log.error("listener %s keeps its current certificate: %s", endpoint.name, reason)
                    self._audit_reload(AuditKind.RELOAD_FAILED, endpoint, reason=reason)
                continue
            endpoint.loaded = loaded
            endpoint.reloads += 1
            endpoint.last_error = ""
            self._audit_reload(AuditKind.RELOADED, endpoint)
            self._report(endpoint)

    def _is_any_file_changed(self) -> bool:
        return any(endpoint.loaded.files.changed() for endpoint in list(self._endpoints.values()))

    def _endpoint(self, name: str, role: str) -> TlsEndpoint:
        endpoint = self._endpoints.get((name, role))
        if endpoint is None:
            # Imported late: a node without TLS starts faster without it.
            from millbeck.server.network.tls import TlsEndpoint

            endpoint = TlsEndpoint(name, role, self._loading(name, role)())
            endpoint.audit = self._audit
            self._endpoints[name, role] = endpoint
            self._report(endpoint)
        return endpoint

    def _loading(self, name: str, role: str, dynamic: Mapping[str, str] | None = None) -> Callable[[], LoadedTls]:
        """Load files and derive keys from passwords; run on a thread, except at start."""
        from millbeck.server.network.tls import load_listener, load_peer

        options = self._config.ssl(name, dynamic)
        if role == LISTENER:
            return partial(load_listener, options, name, self._environment)
        return partial(load_peer, options, self._environment)

    def _check(self, endpoint: TlsEndpoint, loaded: LoadedTls) -> None:
        from millbeck.server.network.tls_renewal import check_dates, check_same_owner, check_trusted_by_itself

        own, before = loaded.material.own, endpoint.loaded.material.certificate
        if own is not None:
            check_dates(own.chain, self._environment.clock.wall_ms())
            if before is not None:
                check_same_owner(before, own.chain[0], loaded.options)
        elif before is not None:
            raise InvalidConfig("ssl.keystore.location is no longer set")
        if endpoint.name in self._config.node_listeners:
            check_trusted_by_itself(loaded, self._environment.network)

    def _audit_reload(self, kind: AuditKind, endpoint: TlsEndpoint, **more: str) -> None:
        if self._audit is None:
            return
        certificate = endpoint.loaded.material.certificate
        subject = "" if certificate is None else certificate.subject
        self._audit.record(
            event_of(kind, listener=endpoint.name, role=endpoint.role, what="certificate", subject=subject, **more)
        )

    def _report(self, endpoint: TlsEndpoint) -> None:
        certificate = endpoint.loaded.material.certificate
        if certificate is None:
            return
        days = certificate.days_left(self._environment.clock.wall_ms())
        subject = (endpoint.name, endpoint.role, certificate.subject)
        if days <= 0:
            log.error("listener %s, as %s: the certificate of %s has expired", *subject)
        else:
            level = logging.WARNING if days < SOON_DAYS else logging.INFO
            log.log(level, "listener %s, as %s: certificate of %s, %d days left", *subject, days)
