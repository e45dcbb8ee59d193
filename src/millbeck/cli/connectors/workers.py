"""``millbeck connect standalone`` and ``millbeck connect worker``: run a worker in this process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from collections.abc import Callable

    from millbeck.pipeline.connect.worker.config import Parsed

_EXTRA: Final = "the worker is not installed: pip install 'millbeck[connect-worker]'"


def _worker_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("-v", "--verbose", is_flag=True, help="Log to standard error what connectors do."),
        click.option(
            "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a setting; can be repeated."
        ),
    ):
        function = option(function)
    return function


@click.command("standalone", cls=Command)
@click.argument("path", metavar="WORKER.PROPERTIES", type=FILE)
@click.argument("files", metavar="CONNECTOR…", nargs=-1, required=True, type=click.Path(path_type=Path))
@_worker_options
def standalone(path: str, files: tuple[Path, ...], settings: tuple[str, ...], verbose: bool) -> None:
    """Run one worker that has its connectors from files, JSON or .properties.

    Their configurations and status are kept in memory, offsets and positions in the log: a worker that is started again
    goes on exactly where it stopped.

    \b
    Examples:
      millbeck connect standalone worker.properties file-source.properties file-sink.properties
      millbeck connect standalone worker.properties orders.json --set bootstrap.servers=broker:9092
    """
    from millbeck.cli.commands.connect import settings_of_file

    connectors = [{name: text for name, text in settings_of_file(file).items() if text is not None} for file in files]
    _run(path, settings, verbose, connectors=connectors, is_standalone=True)


@click.command("worker", cls=Command)
@click.argument("path", metavar="[WORKER.PROPERTIES]", type=FILE, required=False)
@_worker_options
def worker(path: str | None, settings: tuple[str, ...], verbose: bool) -> None:
    """Run a worker that has its connectors from the topics of its cluster, and answers requests on port 8083.

    Precedence: --set, then CONNECT_… variables, then the file.

    \b
    Examples:
      millbeck connect worker worker.properties
      millbeck connect worker --set bootstrap.servers=broker:9092 --set group.id=connect
    """
    _run(path, settings, verbose, connectors=[], is_standalone=False)


def _run(
    path: str | None,
    flags: tuple[str, ...],
    verbose: bool,
    *,
    connectors: list[dict[str, str]],
    is_standalone: bool,
) -> None:
    try:
        from millbeck.pipeline.connect.worker.config import parse, settings_of_environment
        from millbeck.pipeline.connect.worker.serving import serve
    except ImportError as error:
        raise click.ClickException(f"{_EXTRA} ({error})") from error
    from millbeck.cli.settings import provided, settings_of_options
    from millbeck.client.errors import NoBrokerReachable
    from millbeck.host import real_environment
    from millbeck.host.log_lines import log_to
    from millbeck.kernel.errors import ApiError, InvalidConfig

    log_to(sys.stderr, logging.INFO if verbose else logging.WARNING)
    # It logs a stack for each connection to a Java process that has ended; the worker says that it has.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    try:
        given = {**_file(path), **settings_of_environment(os.environ), **settings_of_options(flags)}
        parsed = parse(provided(given, os.environ) | _providers(given))
        host, port = parsed.config.address
        _check_port(host, port)
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    for name in parsed.unknown:
        click.echo(f"millbeck: {name} is not a setting of this release and has no effect", err=True)

    def resolve(settings: Any) -> dict[str, str]:
        return provided({**parsed.providers, **settings}, os.environ)

    def ready(bound: int) -> None:
        shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
        click.echo(f"listening on http://{shown}:{bound}")

    async def main() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(
            real_environment(),
            parsed,
            on_ready=ready,
            is_standalone=is_standalone,
            connectors=connectors,
            resolve=resolve,
            stop=stop,
        )

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    except NoBrokerReachable as error:
        raise click.ClickException(f"no broker answers at {_servers(parsed)}: {error}") from error
    except (ApiError, TimeoutError) as error:
        text = str(error) or "no answer in time"
        raise click.ClickException(f"the brokers at {_servers(parsed)} cannot be used: {text}") from error


def _servers(parsed: Parsed) -> str:
    return ",".join(parsed.config.bootstrap_servers)


def _file(path: str | None) -> dict[str, str]:
    from millbeck.cli.connection_options import file_problem
    from millbeck.kernel.properties import parse_properties

    if path is None:
        return {}
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(file_problem(path, error)) from error


def _providers(settings: dict[str, str]) -> dict[str, str]:
    from millbeck.kernel.config_providers import CONFIG_PROVIDERS

    return {name: text for name, text in settings.items() if name.startswith(CONFIG_PROVIDERS)}


def _check_port(host: str, port: int) -> None:
    from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free

    try:
        check_port_is_free(host, port)
    except PortUnusable as error:
        raise click.ClickException(f"{error}; stop what uses the port or change listeners") from error
