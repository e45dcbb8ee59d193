"""``millbeck up --nodes 3``: directories, ports and settings of the nodes, and their control."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import click

from millbeck.cli.nodes.control import ControlServer
from millbeck.cli.nodes.node_processes import NodeCommand, NodeProcess, NodeProcesses
from millbeck.cli.nodes.running_nodes import announce, runtime_directory
from millbeck.cli.nodes.up_directory import secure_nodes
from millbeck.cli.nodes.up_registry import EXTRA, PORT, REPLICAS_MAX, RegistryOnDemand, is_installed, secure_registry
from millbeck.cli.nodes.up_screen import bootstrap_of, cluster_screen, secure_cluster_screen
from millbeck.cli.settings import embedded_config, settings_of_options
from millbeck.host import real_environment
from millbeck.kernel.options import ConfigLayers
from millbeck.server.config.sections.metadata_log import MembershipOptions
from millbeck.server.local.client_configs import PROTOCOL
from millbeck.server.local.cluster import ClusterMismatch, format_cluster, restore_layouts
from millbeck.server.local.embedded import FAST_FAILOVER, NodePlacement, cluster_settings
from millbeck.storage.properties import MetaPropertiesError

PORT_STEP: Final = 10
"""The distance between the ports of consecutive nodes."""
PER_NODE: Final = (
    "broker.id",
    "controller.listener.names",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listeners",
    "log.dirs",
    "metrics.http.port",
    "node.id",
    "process.roles",
)
"""Settings that differ between nodes or must be consistent; they cannot be given with --set."""


def run_cluster(
    node_count: int,
    *,
    directory: str,
    is_memory: bool,
    host: str,
    port: int,
    metrics_port: int,
    settings: Sequence[str],
    racks: Sequence[str],
    is_fast: bool,
    is_secure: bool,
    verbose: bool,
) -> None:
    """Run until Ctrl-C, or until the nodes cannot continue; raises `click.ClickException`.

    ``racks`` are assigned round robin. ``is_fast`` shortens the timeouts of failover (`FAST_FAILOVER`). ``is_secure``
    enables TLS, SASL and ACLs.
    """
    check_settings(settings, racks)
    host = host or "127.0.0.1"
    environment = real_environment()
    try:
        places = places_of(node_count, directory, host=host, port=port, metrics_port=metrics_port)
        places = restore_layouts(environment.files, directory, places, host=host)
        secured = secure_nodes(directory, [place.node_id for place in places], host=host) if is_secure else None
        protocol = PROTOCOL if is_secure else "PLAINTEXT"
        timeouts = FAST_FAILOVER if is_fast else {}
        configs = []
        for index, place in enumerate(places):
            rack = {"broker.rack": racks[index % len(racks)]} if racks else {}
            own = {} if secured is None else secured.node_settings(place.node_id)
            defaults = {**timeouts, **cluster_settings(place, places, host=host, protocol=protocol), **rack, **own}
            given = [name for name in (*PER_NODE, *rack) if name in defaults]
            configs.append(embedded_config(defaults, settings, os.environ, given=given))
        format_cluster(environment, directory, places, configs, secured)
    except (OSError, ClusterMismatch, MetaPropertiesError) as error:
        raise click.ClickException(str(error)) from error
    orders = [NodeCommand(node_id=config.node.node_id, settings=config.texts) for config in configs]
    failover = failover_text(configs[0].membership.broker_session_timeout_ms)
    shown = "in memory, lost on exit" if is_memory else directory

    def screen(answers: Sequence[dict[str, int]], registry: str) -> str:
        if secured is None:
            return cluster_screen(host, answers, data=shown, failover=failover, registry=registry)
        secured.write_client_files(environment.files, bootstrap_of(host, answers))
        return secure_cluster_screen(host, answers, data=directory, is_memory=is_memory, registry=registry)

    def listen(bootstrap: str, replica_count: int) -> RegistryOnDemand:
        if secured is None:
            return RegistryOnDemand("127.0.0.1", PORT if port else 0, bootstrap, replica_count=replica_count)
        return secure_registry(secured, PORT if port else 0, bootstrap, replica_count=replica_count)

    registry = listen if is_installed() else None
    asyncio.run(_run(orders, verbose=verbose, host=host, data=directory, screen=screen, listen=registry))


def check_settings(settings: Sequence[str], racks: Sequence[str] = ()) -> None:
    for name in settings_of_options(settings):
        if name in PER_NODE:
            raise click.UsageError(f"--set: {name} differs between nodes, and --nodes chooses it")
        if racks and name == "broker.rack":
            raise click.UsageError("--set broker.rack and --racks cannot be combined")


def parse_racks(text: str, node_count: int) -> list[str]:
    """The racks of ``--racks``; raises `click.UsageError`."""
    racks = [each.strip() for each in text.split(",")]
    if not all(racks):
        raise click.UsageError(f"--racks: {text!r} has an empty rack name")
    if len(racks) > node_count:
        raise click.UsageError(f"--racks: {len(racks)} racks for {node_count} nodes")
    return racks


def failover_text(session_ms: int) -> str:
    """A text with the failover time and the option that changes it."""
    kafka_ms = MembershipOptions.resolve(ConfigLayers(static={})).broker_session_timeout_ms
    after = f"{session_ms / 1000:g} s after a node's last heartbeat"
    return f"{after} (--failover kafka: {kafka_ms / 1000:g} s)" if session_ms < kafka_ms else after


def places_of(node_count: int, directory: str, *, host: str, port: int, metrics_port: int) -> list[NodePlacement]:
    """The directories and ports of the nodes. Ports count up from the first one; with port 0, any free ports."""
    if port == 0:
        ports = _free_ports(host, node_count * 2)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        metrics_port = 0
    else:
        pairs = [(port + PORT_STEP * index, port + PORT_STEP * index + 1) for index in range(node_count)]
    return [
        NodePlacement(
            node_id=index + 1,
            directory=os.path.join(directory, f"node-{index + 1}"),
            port=own,
            controller_port=controller,
            metrics_port=metrics_port + index if metrics_port else 0,
        )
        for index, (own, controller) in enumerate(pairs)
    ]


async def _run(
    orders: Sequence[NodeCommand],
    *,
    verbose: bool,
    host: str,
    data: str,
    screen: Callable[[Sequence[dict[str, int]], str], str],
    listen: Callable[[str, int], RegistryOnDemand] | None,
) -> None:
    """Run the nodes; ``listen`` makes the schema registry for the brokers and for so many replicas."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    fleet = NodeProcesses(orders, verbose=verbose)
    waits: list[asyncio.Task[object]] = [asyncio.create_task(stop.wait())]
    registry: RegistryOnDemand | None = None
    try:
        starting = asyncio.create_task(fleet.start())
        await asyncio.wait([starting, *waits], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        await starting
        answers = [member.answer for member in fleet.members]
        if listen is not None:
            registry = listen(bootstrap_of(host, answers), min(REPLICAS_MAX, len(answers)))
        click.echo(screen(answers, EXTRA if registry is None else registry.url))
        failing = asyncio.create_task(fleet.failed())
        async with _controlled(fleet, host=host, data=data):
            await asyncio.wait([failing, *waits], return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            raise failing.result()
        failing.cancel()
    finally:
        for wait in waits:
            wait.cancel()
        if registry is not None:
            await registry.close()
        await fleet.stop()


@asynccontextmanager
async def _controlled(fleet: NodeProcesses, *, host: str, data: str) -> AsyncIterator[None]:
    """Accept commands for single nodes from other terminals, if the user has a directory for the socket."""

    async def handle(verb: str, node_id: int | None) -> Any:
        match verb:
            case "status":
                return [_row(member, host) for member in fleet.members]
            case "stop" | "kill":
                member = fleet.hold(node_id, is_crash=verb == "kill")
                await member.wait()
                done = "killed" if verb == "kill" else "stopped"
                return f"node {node_id} is {done}; start it again with `millbeck up start {node_id}`"
            case "start":
                member = await fleet.release(node_id)
                return f"node {node_id} is ready (process {member.process_id})"
        raise click.ClickException(f"there is no command {verb[:40]!r}")

    directory = runtime_directory()
    if directory is None:
        yield
        return
    server = ControlServer(os.path.join(directory, f"{os.getpid()}.sock"), handle)
    try:
        await server.start()
    except OSError:
        # The path is too long, or its file system has no Unix sockets: the nodes run without the socket.
        yield
        return
    bootstrap = ",".join(_address(host, member) for member in fleet.members)
    try:
        with announce(data=data, bootstrap=bootstrap, socket=server.path):
            yield
    finally:
        await server.close()


def _address(host: str, member: NodeProcess) -> str:
    return f"{f'[{host}]' if ':' in host else host}:{member.answer['port']}"


def _row(member: NodeProcess, host: str) -> dict[str, Any]:
    return {
        "node": member.order.node_id,
        "state": member.state,
        "pid": member.process_id,
        "bootstrap": _address(host, member),
        "metrics_port": member.answer["metrics_port"],
        "uptime_s": member.uptime_seconds,
        "restarts": member.restart_count,
        "data": member.order.settings["log.dirs"],
    }


def _free_ports(host: str, count: int) -> list[int]:
    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sockets = [stack.enter_context(socket.socket(family, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]
