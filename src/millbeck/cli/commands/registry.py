"""``millbeck registry``: run an instance of the schema registry, or manage the schemas of one."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.verbs import Command

_SWITCH_SECONDS: Final = 0.0005
_EXTRA: Final = "the registry is not installed: pip install 'millbeck[registry]'"


class _InputWatch(asyncio.Protocol):
    """Detects that standard input has ended, because the parent process has ended."""

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended

    def connection_lost(self, error: Exception | None) -> None:
        self._ended()


_HOMES: Final = {
    "subject": "subjects",
    "schema": "subjects",
    "compat": "levels",
    "mode": "levels",
    "context": "levels",
    "lint": "applying",
    "diff": "applying",
    "apply": "applying",
    "export": "moving",
    "import": "moving",
    "copy": "moving",
    "repair": "repairing",
    "password": "passwords",
}
"""The modules of the subcommands that connect to a registry, which are imported when used."""
_FUNCTIONS: Final = {"export": "export_all", "import": "import_all"}


class _Verbs(click.Group):
    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*super().list_commands(ctx), *_HOMES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        home = _HOMES.get(cmd_name)
        if home is None:
            return super().get_command(ctx, cmd_name)
        module = import_module(f"millbeck.cli.registries.{home}")
        found: click.Command = getattr(module, _FUNCTIONS.get(cmd_name, cmd_name))
        return found


@click.group(cls=_Verbs)
def command() -> None:
    """Run a schema registry, or manage the schemas of one.

    \b
    Examples:
      millbeck registry start
      millbeck registry schema register orders-value order.avsc
      millbeck registry apply schemas/ --dry-run
    """


@command.command()
@click.option("-c", "--config", "path", metavar="FILE", type=FILE, help="The schema-registry.properties file to read.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a setting; can be repeated.")
@click.option("--socket", "socket_number", type=int, hidden=True)
@click.option("--idle-seconds", type=float, hidden=True)
@click.option("--stops-with-input", is_flag=True, hidden=True)
@click.option("-v", "--verbose", is_flag=True, help="Log to standard error.")
def start(
    path: str | None,
    settings: tuple[str, ...],
    socket_number: int | None,
    idle_seconds: float | None,
    stops_with_input: bool,
    verbose: bool,
) -> None:
    """Run an instance, by default on port 8081 for the brokers at 127.0.0.1:9092.

    Precedence: --set, then SCHEMA_REGISTRY_… variables, then the file.

    \b
    Examples:
      millbeck registry start
      millbeck registry start --set listeners=http://127.0.0.1:8085 --set kafkastore.bootstrap.servers=broker:9092
    """
    try:
        from millbeck.registry.rest.config import parse, settings_of_environment
        from millbeck.registry.rest.serving import serve
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{_EXTRA} ({error.name} is missing)") from error
    from millbeck.cli.nodes.ports import PortUnusable, check_port_is_free
    from millbeck.cli.settings import read_properties, settings_of_options
    from millbeck.host import real_environment
    from millbeck.host.log_lines import log_to
    from millbeck.kernel.errors import ApiError, InvalidConfig

    log_to(sys.stderr, logging.INFO if verbose else logging.WARNING)
    in_file: dict[str, str] = {}
    if path is not None:
        try:
            in_file = read_properties(path, os.environ)
        except (OSError, UnicodeDecodeError, InvalidConfig) as error:
            raise click.ClickException(f"{path}: {error}") from error
    try:
        given = {**in_file, **settings_of_environment(os.environ), **settings_of_options(settings)}
        parsed = parse(given)
        config = parsed.config
        host, port = config.address
        if socket_number is None:
            check_port_is_free(host, port)
    except PortUnusable as error:
        raise click.ClickException(f"{error}; stop what uses the port or change listeners") from error
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    for name in parsed.unknown:
        click.echo(f"millbeck: {name} is not a setting of this release and has no effect", err=True)

    def ready(bound: int) -> None:
        shown = f"[{host}]" if ":" in host else host or "0.0.0.0"
        click.echo(f"listening on {config.scheme}://{shown}:{bound}")

    # Schemas are parsed on threads; requests must not wait for them longer than this.
    sys.setswitchinterval(_SWITCH_SECONDS)

    async def run() -> None:
        stop = asyncio.Event()
        if stops_with_input:
            await asyncio.get_running_loop().connect_read_pipe(lambda: _InputWatch(stop.set), sys.stdin)
        await serve(
            real_environment(),
            parsed,
            on_ready=ready,
            socket_number=socket_number,
            idle_seconds=idle_seconds,
            stop=stop,
        )

    try:
        asyncio.run(run())
    except TimeoutError as error:
        brokers = ", ".join(config.bootstrap_servers)
        raise click.ClickException(
            f"no answer from {brokers} in kafkastore.init.timeout.ms: check kafkastore.bootstrap.servers"
        ) from error
    except (ApiError, InvalidConfig) as error:
        raise click.ClickException(str(error)) from error
