"""One node without a configuration file, in this process, for ``millbeck up``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

import click

from millbeck.cli.nodes.node_runner import ErrorHints, check_address, run_node
from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free
from millbeck.cli.nodes.running_nodes import announce
from millbeck.cli.nodes.up_directory import node_directory, secure_nodes
from millbeck.cli.nodes.up_registry import EXTRA, PORT, RegistryOnDemand, is_installed, secure_registry
from millbeck.cli.nodes.up_screen import address_of, screen, secure_screen
from millbeck.cli.settings import embedded_config
from millbeck.kernel.environment import Environment
from millbeck.server.local.client_configs import PROTOCOL
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories
from millbeck.server.local.secured import APP, SecuredCluster
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
    is_secure: bool,
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
            secured = None
            if is_secure:
                # Checked before certificates are made.
                check_address(host, port, ADVICE)
                secured = secure_nodes(directory, [1], host=host)
            defaults = _defaults(directory, secured, host=host, port=port, metrics_port=metrics_port)
            config = embedded_config(defaults, settings, os.environ, given=given)
            if is_memory and config.directories != (defaults["log.dirs"],):
                raise click.UsageError(f"--memory and log.dirs={','.join(config.directories)} cannot be combined")

            def prepare(environment: Environment) -> None:
                users, acls = ((), ()) if secured is None else (secured.users, secured.acls)
                format_directories(environment, config, ignore_formatted=True, users=users, acls=acls)

            async def started(node: Node) -> bool:
                if asked_metrics_port and node.metrics_port != asked_metrics_port:
                    raise click.ClickException(f"--metrics-port: {asked_metrics_port} is in use, choose another or 0")
                address = address_of(node)
                if check:
                    from millbeck.cli.nodes.self_check import produce_and_consume

                    await produce_and_consume(node, None if secured is None else secured.clients(APP, address).java)
                    return False
                if secured is not None:
                    secured.write_client_files(node.environment.files, address)
                    shown = directory
                    registry = _secure_registry(secured, address, port, registries)
                    click.echo(secure_screen(node, shown, is_memory=is_memory, registry=registry))
                else:
                    shown = ", ".join(config.directories)
                    click.echo(screen(node, None if is_memory else shown, _registry(address, port, registries)))
                first = node.listeners[0]
                stack.enter_context(announce(data=shown, bootstrap=f"{first.address.host}:{first.port}"))
                return True

            async def stopping() -> None:
                for registry in registries:
                    await registry.close()

            run_node(config, prepare, started, advice=ADVICE, verbose=verbose, stopping=stopping)
    finally:
        if is_memory:
            shutil.rmtree(directory, ignore_errors=True)


def _defaults(
    directory: str, secured: SecuredCluster | None, *, host: str, port: int, metrics_port: int
) -> dict[str, str]:
    if secured is None:
        return embedded_settings(directory, host=host, port=port, metrics_port=metrics_port)
    # The certificates must not be in a log directory, because Kafka would not start with it.
    own = node_directory(directory, 1)
    settings = embedded_settings(own, host=host, port=port, metrics_port=metrics_port, protocol=PROTOCOL)
    return settings | secured.node_settings(1)


def _secure_registry(secured: SecuredCluster, address: str, port: int, registries: list[RegistryOnDemand]) -> str:
    """The same for a secured node, with its users and its certificate."""
    if not is_installed():
        return EXTRA
    registry = secure_registry(secured, PORT if port else 0, address)
    registries.append(registry)
    return registry.url


def _registry(address: str, port: int, registries: list[RegistryOnDemand]) -> str:
    """Listen for the schema registry's clients; returns its URL, or the command that installs it. If the node has a
    free port, the registry has one too."""
    if not is_installed():
        return EXTRA
    registry = RegistryOnDemand("127.0.0.1", PORT if port else 0, address)
    registries.append(registry)
    return registry.url
