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
from millbeck.registry.rest.config import RegistryConfig, instance_settings
from millbeck.registry.service import SchemaService

EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")
_CONNECTIONS_MAX: Final = 1000
_POLL_SECONDS: Final = 0.01
_IDLE_LOOK_SECONDS: Final = 1.0


async def serve(
    environment: Environment,
    config: RegistryConfig,
    client: Mapping[str, Value],
    *,
    on_ready: Callable[[int], None],
    socket_number: int | None = None,
    idle_seconds: float | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until a signal or ``stop``; ``on_ready`` gets the port once requests are answered.

    ``socket_number`` is a listening socket that the process has inherited, and ``idle_seconds`` the time without a
    request after which it ends. Raises `ApiError` if the log cannot be used.
    """
    app = RegistryApp(forward_timeout_s=2 * config.timeout_ms / 1000, start_timeout_s=config.init_timeout_ms / 1000)
    host, port = config.address
    options = uvicorn.Config(
        app,
        host=host or "0.0.0.0",
        port=port,
        fd=socket_number,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS_MAX,
    )
    server = uvicorn.Server(options)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_POLL_SECONDS)
        if serving.done():
            return
        bound = server.servers[0].sockets[0].getsockname()[1]
        name = config.host_name or (environment.network.host_name() if host in EVERY_INTERFACE else host)
        identity = Identity(name, bound, is_eligible=config.leader_eligibility)
        instance = Instance(environment, identity, instance_settings(config, client))
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
        server.should_exit = True
        await serving


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
