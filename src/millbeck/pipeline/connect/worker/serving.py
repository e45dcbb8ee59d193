"""Runs a worker and its REST interface in this process. Needs starlette and uvicorn, and for its tasks pyspark."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.rest.answers import Decision, GroupOffset, Request, RestError
from millbeck.pipeline.connect.rest.forwarding import Forwarded, ForwardedRequest, forward
from millbeck.pipeline.connect.worker.config import Parsed
from millbeck.pipeline.connect.worker.engine import Engine
from millbeck.pipeline.connect.worker.member import Member, Resolve

with needs_extra("connect-worker"):
    import uvicorn

    from millbeck.pipeline.connect.rest.app import ConnectApp
    from millbeck.pipeline.connect.rest.routes import Routes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)

EVERY_INTERFACE: Final = ("", "0.0.0.0", "::")
_CONNECTIONS_MAX: Final = 1000
_POLL_SECONDS: Final = 0.01
_FAIR: Final = "FAIR"


async def serve(
    environment: Environment,
    parsed: Parsed,
    *,
    on_ready: Callable[[int], None],
    is_standalone: bool = False,
    connectors: Sequence[Mapping[str, str]] = (),
    resolve: Resolve = dict,
    engine: Engine | None = None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until ``stop``; ``on_ready`` gets the port once requests are answered.

    ``connectors`` are created at start, if the worker does not have them. Raises `InvalidConfig`, and `ApiError` or
    `TimeoutError` if the brokers cannot be used.
    """
    config = parsed.config
    host, port = config.address
    holder = _Backend()
    app = ConnectApp(holder)
    server = _Server(
        uvicorn.Config(
            app,
            host=host or "0.0.0.0",
            port=port,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_CONNECTIONS_MAX,
        )
    )
    serving = asyncio.create_task(server.serve())
    stopping = asyncio.create_task((stop or asyncio.Event()).wait())
    member: Member | None = None
    try:
        while not server.started and not serving.done():
            await asyncio.sleep(_POLL_SECONDS)
        if serving.done():
            return
        bound = config.advertised_port or server.servers[0].sockets[0].getsockname()[1]
        name = config.advertised_host or (environment.network.host_name() if host in EVERY_INTERFACE else host)
        member = Member(
            environment,
            parsed,
            engine or spark_engine(parsed),
            worker_id=f"{name}:{bound}",
            is_standalone=is_standalone,
            resolve=resolve,
        )
        starting = asyncio.create_task(member.start())
        await asyncio.wait({starting, serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        await starting
        holder.member = member
        app.routes = Routes(member.cluster, cluster_id=member.cluster_id, loggers=member.loggers)
        for settings in connectors:
            await _create(member, app.routes, settings)
        on_ready(server.servers[0].sockets[0].getsockname()[1])
        waits: set[asyncio.Future[Any]] = {serving, stopping, member.failed}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if member.failed.done():
            await member.failed
    finally:
        stopping.cancel()
        app.routes = None
        if member is not None:
            await member.close()
        server.should_exit = True
        await serving


async def _create(member: Member, routes: Routes, settings: Mapping[str, str]) -> None:
    """Create a connector as by a request. Raises `InvalidConfig` with the answer."""
    name = settings.get("name", "")
    if not name:
        raise InvalidConfig("a connector's file has no name")
    outcome = routes.respond(Request(method="PUT", path=f"/connectors/{name}/config", body=dict(settings)))
    status, body = getattr(outcome, "status", 200), getattr(outcome, "body", None)
    if status >= 300:
        raise InvalidConfig(f"{name}: {body.get('message') if isinstance(body, dict) else body}")
    try:
        await member.perform(outcome)  # type: ignore[arg-type]
    except RestError as error:
        raise InvalidConfig(f"{name}: {error}") from error


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are handled by who runs the worker: connectors have to be stopped first."""
        yield


class _Backend:
    """The member, once there is one."""

    def __init__(self) -> None:
        self.member: Member | None = None

    async def perform(self, decision: Decision) -> None:
        await self._present().perform(decision)

    async def committed(self, group: str) -> Iterable[GroupOffset]:
        return await self._present().committed(group)

    def elsewhere(self, decision: Decision) -> str | None:
        return self._present().elsewhere(decision)

    async def forward(self, url: str, request: ForwardedRequest) -> Forwarded:
        return await forward(url, request)

    async def problems(self, settings: Mapping[str, str]) -> Iterable[SettingProblem]:
        return await self._present().problems(settings)

    def metrics(self) -> str:
        return self._present().metrics()

    def _present(self) -> Member:
        if self.member is None:
            raise RestError(503, "the worker is starting")
        return self.member


def spark_engine(parsed: Parsed) -> Engine:
    """The engine of a worker. Java is started when the first share comes; raises `ConfigError` without pyspark."""
    try:
        from millbeck.pipeline.connect.worker.spark_engine import SparkEngine
    except ImportError as error:
        raise ConfigError(f"tasks of connectors need Spark: {error}") from error
    return SparkEngine(
        lambda: _session(parsed),
        interval_s=parsed.config.turn_interval_ms / 1000,
        long_max=max(1, _processes(parsed) - 1),
    )


def _processes(parsed: Parsed) -> int:
    """How many tasks may run at the same time on this machine."""
    return parsed.config.workers_max or 2 * (os.cpu_count() or 1)


def _session(parsed: Parsed) -> SparkSession:
    from millbeck.pipeline.session import spark_session

    config = parsed.config
    settings = {
        "spark.driver.memory": config.spark_memory,
        "spark.scheduler.mode": _FAIR,
        # A share that has failed is planned again; Spark must not repeat it under the same transaction.
        "spark.task.maxFailures": "1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        **parsed.spark,
    }
    return spark_session(
        "millbeck connect", master=config.spark_master or f"local[{_processes(parsed)}]", settings=settings
    )
