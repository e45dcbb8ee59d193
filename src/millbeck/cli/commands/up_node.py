"""One node without a configuration file, in this process, for ``millbeck up``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import click

from millbeck.cli.commands.up_screen import address_of, screen
from millbeck.cli.nodes.node_runner import ErrorHints, run_node
from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free
from millbeck.cli.nodes.running_nodes import announce
from millbeck.cli.nodes.up_registry import EXTRA, PORT, RegistryOnDemand, is_installed
from millbeck.cli.settings import embedded_config
from millbeck.kernel.environment import Environment
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node

METRICS_PORT: Final = 9404
ADVICE: Final = ErrorHints(
    port_in_use="choose another with --port, or --port 0 for a free one",
    address="choose another with --host",
    directory_in_use="stop the node that runs on it, or choose another directory with --data",
)


def run_single_node(
    directory: str,
    *,
    is_memory: bool,
    host: str,
    port: int,
    metrics_port: int | None,
    settings: Sequence[str],
    given: Sequence[str],
    check: bool,
    verbose: bool,
) -> None:
    """Run a node until Ctrl-C, or with ``check`` until that is done; raises `click.ClickException`.

    ``given`` are the settings that other options of the command line have set.
    """
    if metrics_port:
        try:
            check_port_is_free("127.0.0.1", metrics_port)
        except PortUnusable as error:
            raise click.ClickException(f"--metrics-port: {error}; choose another or 0") from error
    asked_metrics_port = metrics_port
    if metrics_port is None:
        metrics_port = 0 if port == 0 else METRICS_PORT
    registries: list[RegistryOnDemand] = []
    try:
        with ExitStack() as stack:
            defaults = embedded_settings(directory, host=host, port=port, metrics_port=metrics_port)
            config = embedded_config(defaults, settings, os.environ, given=given)
            if is_memory and config.directories != (directory,):
                raise click.UsageError(f"--memory and log.dirs={','.join(config.directories)} exclude each other")

            def prepare(environment: Environment) -> None:
                format_directories(environment, config, ignore_formatted=True)

            async def started(node: Node) -> bool:
                if asked_metrics_port and node.metrics_port != asked_metrics_port:
                    raise click.ClickException(f"--metrics-port: {asked_metrics_port} is in use, choose another or 0")
                if check:
                    from millbeck.cli.nodes.self_check import produce_and_consume

                    await produce_and_consume(node)
                    return False
                shown = ", ".join(config.directories)
                if is_installed():
                    # A free port goes with a free port.
                    registry = RegistryOnDemand("127.0.0.1", PORT if port else 0, address_of(node))
                    registries.append(registry)
                    told = f"http://{registry.host}:{registry.port}"
                else:
                    told = EXTRA
                click.echo(screen(node, None if is_memory else shown, told))
                stack.enter_context(
                    announce(data=shown, bootstrap=f"{node.listeners[0].address.host}:{node.listeners[0].port}")
                )
                return True

            async def stopping() -> None:
                for registry in registries:
                    await registry.close()

            run_node(config, prepare, started, advice=ADVICE, verbose=verbose, stopping=stopping)
    finally:
        if is_memory:
            shutil.rmtree(directory, ignore_errors=True)
