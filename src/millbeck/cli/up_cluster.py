"""``millbeck up --nodes 3``: where each node lives, what it is told, and the screen that says how to reach them."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import click

from millbeck.cli.fleet import Fleet, MemberOrder
from millbeck.cli.settings import embedded_config
from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import settings_of_flags
from millbeck.server.embedded import Place, cluster_settings
from millbeck.server.local_cluster import ClusterMismatch, format_cluster, settle_places
from millbeck.storage.properties import MetaPropertiesError

PORT_STEP: Final = 10
"""Between the ports of one node and the next: 9092 and 9093, 9102 and 9103, ..."""
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
"""Settings that differ from node to node, or must fit together, and so are not for --set."""


def run_cluster(
    node_count: int,
    *,
    directory: str,
    is_memory: bool,
    host: str,
    port: int,
    metrics_port: int,
    settings: Sequence[str],
    verbose: bool,
) -> None:
    """Run until Ctrl-C, or until the nodes can not go on; raises `click.ClickException`."""
    check_settings(settings)
    host = host or "127.0.0.1"
    environment = real_environment()
    try:
        places = places_of(node_count, directory, host=host, port=port, metrics_port=metrics_port)
        places = settle_places(environment.files, directory, places, host=host)
        configs = [
            embedded_config(defaults, settings, os.environ, given=[name for name in PER_NODE if name in defaults])
            for defaults in (cluster_settings(place, places, host=host) for place in places)
        ]
        cluster_id = format_cluster(environment, directory, places, configs)
    except (OSError, ClusterMismatch, MetaPropertiesError) as error:
        raise click.ClickException(str(error)) from error
    orders = [MemberOrder(node_id=config.node.node_id, settings=config.texts) for config in configs]
    shown = "in memory, gone when this ends" if is_memory else directory
    asyncio.run(_run(orders, verbose=verbose, host=host, data=shown, cluster_id=cluster_id))


def check_settings(settings: Sequence[str]) -> None:
    try:
        named = settings_of_flags(settings)
    except InvalidConfig as error:
        raise click.UsageError(f"--set: {error}") from error
    for name in named:
        if name in PER_NODE:
            raise click.UsageError(f"--set: {name} is each node's own, and --nodes chooses it")


def places_of(node_count: int, directory: str, *, host: str, port: int, metrics_port: int) -> list[Place]:
    """Ports follow from the first; with port 0 they are any that are free."""
    if port == 0:
        ports = _free_ports(host, node_count * 2)
        pairs = list(zip(ports[::2], ports[1::2], strict=True))
        metrics_port = 0
    else:
        pairs = [(port + PORT_STEP * index, port + PORT_STEP * index + 1) for index in range(node_count)]
    return [
        Place(
            node_id=index + 1,
            directory=os.path.join(directory, f"node-{index + 1}"),
            port=own,
            controller_port=controller,
            metrics_port=metrics_port + index if metrics_port else 0,
        )
        for index, (own, controller) in enumerate(pairs)
    ]


async def _run(orders: Sequence[MemberOrder], *, verbose: bool, host: str, data: str, cluster_id: str) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    fleet = Fleet(orders, verbose=verbose)
    waits: list[asyncio.Task[object]] = [asyncio.create_task(stop.wait())]
    try:
        starting = asyncio.create_task(fleet.start())
        await asyncio.wait([starting, *waits], return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        await starting
        click.echo(screen(host, [member.answer for member in fleet.members], data=data, cluster_id=cluster_id))
        failing = asyncio.create_task(fleet.failed())
        await asyncio.wait([failing, *waits], return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            raise failing.result()
        failing.cancel()
    finally:
        for wait in waits:
            wait.cancel()
        await fleet.stop()


def screen(host: str, answers: Sequence[dict[str, int]], *, data: str, cluster_id: str) -> str:
    """All that one needs to begin, on one screen."""
    shown = f"[{host}]" if ":" in host else host
    addresses = ",".join(f"{shown}:{answer['port']}" for answer in answers)
    metrics = " ".join(f"http://127.0.0.1:{answer['metrics_port']}/metrics" for answer in answers)
    return f"""
  millbeck is up: {len(answers)} nodes

    bootstrap    {addresses}
    data         {data}
    metrics      {metrics}
    cluster      {cluster_id}

  Here
    export MILLBECK_BOOTSTRAP={addresses}
    echo hello | millbeck produce -t greetings
    millbeck consume -t greetings --from-beginning
    millbeck topic describe --topic greetings
    millbeck quorum describe --status
  Python (confluent-kafka)
    Producer({{"bootstrap.servers": "{addresses}"}}).produce("greetings", b"hello")

  Ctrl-C ends all of them.
"""


def _free_ports(host: str, count: int) -> list[int]:
    with ExitStack() as stack:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sockets = [stack.enter_context(socket.socket(family, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((host, 0))
        return [each.getsockname()[1] for each in sockets]
