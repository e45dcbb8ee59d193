"""Runs one instance and its HTTP server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import uvicorn

from millbeck.client.config import Value
from millbeck.kernel.environment import Environment
from millbeck.registry.election import Identity
from millbeck.registry.formats.every import every_format
from millbeck.registry.instance import Instance
from millbeck.registry.rest.app import RegistryApp
from millbeck.registry.rest.authentication import Guard, RequestRate, UsersFile
from millbeck.registry.rest.config import Parsed, RegistryConfig, access_settings, instance_settings
from millbeck.registry.rest.listening import http_server, peer_tls
from millbeck.registry.rest.log_acls import LogAcls
from millbeck.registry.service import SchemaService
from millbeck.security.tls.principal_mapping import PrincipalMapping

EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")
_POLL_SECONDS: Final = 0.01
_IDLE_LOOK_SECONDS: Final = 1.0


async def serve(
    environment: Environment,
    parsed: Parsed,
    *,
    on_ready: Callable[[int], None],
    socket_number: int | None = None,
    idle_seconds: float | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until a signal or ``stop``; ``on_ready`` gets the port once requests are answered.

    ``socket_number`` is a listening socket that the process has inherited, and ``idle_seconds`` the time without a
    request after which it ends. Raises `ApiError` if the log cannot be used, and `InvalidConfig`.
    """
    config = parsed.config
    app = RegistryApp(forward_timeout_s=2 * config.timeout_ms / 1000, start_timeout_s=config.init_timeout_ms / 1000)
    guard = app.guard = guard_of(environment, config, parsed.client)
    if config.scheme == "https":
        app.peer_tls = peer_tls(environment, parsed.tls)
    host, _ = config.address
    server = http_server(environment, app, config, parsed.tls, socket_number)
    watching = asyncio.create_task(guard.watch())
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_POLL_SECONDS)
        if serving.done():
            return
        bound = server.servers[0].sockets[0].getsockname()[1]
        name = config.host_name or (environment.network.host_name() if host in EVERY_INTERFACE else host)
        identity = Identity(name, bound, config.scheme, config.leader_eligibility)
        instance = Instance(environment, identity, instance_settings(config, parsed.client))
        starting = asyncio.create_task(instance.start())
        try:
            await asyncio.wait({starting, serving}, return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                return
            await starting
            app.service = SchemaService(environment, instance, every_format())
            on_ready(bound)
            await _until_over(server, serving, app, idle_seconds, stop or asyncio.Event())
        finally:
            app.service = None
            starting.cancel()
            await instance.stop()
    finally:
        watching.cancel()
        server.should_exit = True
        await serving


def guard_of(environment: Environment, config: RegistryConfig, client: Mapping[str, Value]) -> Guard:
    """Who may send requests; raises `InvalidConfig`."""
    methods = access_settings(config)
    return Guard(
        environment,
        methods=methods,
        realm=config.authentication_realm,
        users=None if config.users_file is None else UsersFile(environment, config.users_file),
        mapping=PrincipalMapping(config.ssl_principal_mapping_rules),
        rate=RequestRate(config.requests_per_second_max),
        acls=LogAcls(environment, {"client.id": "schema-registry", **client}) if config.roles_from_acls else None,
    )


async def _until_over(
    server: uvicorn.Server,
    serving: asyncio.Task[None],
    app: RegistryApp,
    idle_seconds: float | None,
    stop: asyncio.Event,
) -> None:
    loop = asyncio.get_running_loop()
    app.last_request_s = loop.time()
    stopping = asyncio.create_task(stop.wait())
    try:
        while not serving.done():
            await asyncio.wait({serving, stopping}, timeout=_IDLE_LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            is_idle = idle_seconds is not None and loop.time() - app.last_request_s > idle_seconds
            if is_idle or stop.is_set():
                server.should_exit = True
                await asyncio.wait({serving})
    finally:
        stopping.cancel()
