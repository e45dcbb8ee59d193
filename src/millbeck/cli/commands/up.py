"""``millbeck up``: run a node or a local cluster without a configuration file, and control its nodes."""

from __future__ import annotations

import os
from typing import Final

import click

from millbeck.cli.completed_types import BROKER_SETTING, FILE
from millbeck.cli.nodes.up_control import kill, start, status, stop
from millbeck.cli.verbs import Command

DEFAULT_DATA: Final = ".millbeck"
METRICS_PORT: Final = 9404
NODES_MAX: Final = 9


class UpGroup(Command, click.Group):
    """A command that runs nodes itself, with subcommands for running nodes."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            from millbeck.cli.suggestions import did_you_mean

            hint = did_you_mean(args[0], self.commands) or f"; it is one of {', '.join(self.commands)}, or left out"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=UpGroup, invoke_without_command=True, subcommand_metavar="[COMMAND]")
@click.option("--data", metavar="DIR", type=FILE, default=DEFAULT_DATA, show_default=True, help="The data directory.")
@click.option("--memory", is_flag=True, help="Keep all data in memory; it is lost on exit.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="The address to listen on; empty (or 0.0.0.0) for every interface.",
)
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 chooses a free one and prints it.",
)
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), help=f"Port of /metrics (default {METRICS_PORT}, or a free one)."
)
@click.option(
    "--nodes",
    default=1,
    show_default=True,
    type=click.IntRange(1, NODES_MAX),
    help="The number of nodes; several form a cluster, one process each.",
)
@click.option("--racks", metavar="RACK,…", help="With --nodes: racks (broker.rack), assigned to nodes round robin.")
@click.option(
    "--failover",
    type=click.Choice(["fast", "kafka"]),
    default="fast",
    show_default=True,
    help="With --nodes: fast sets short heartbeat, session and quorum timeouts for quick "
    "failover; kafka keeps Kafka's defaults.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    type=BROKER_SETTING,
    help="Set a broker setting; can be repeated.",
)
@click.option(
    "--secure",
    is_flag=True,
    help="Use TLS, SASL and ACLs: creates certificates, users and files for clients.  [needs millbeck[security]]",
)
@click.option("--check", is_flag=True, help="Produce and consume a few records, print the result, and exit.")
@click.option("-v", "--verbose", is_flag=True, help="Log to standard error.")
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    memory: bool,
    host: str,
    port: int,
    metrics_port: int | None,
    nodes: int,
    racks: str | None,
    failover: str,
    settings: tuple[str, ...],
    secure: bool,
    check: bool,
    verbose: bool,
) -> None:
    """Run a node without a configuration file: formats storage on first use, then prints how to connect.

    The commands below are used from another terminal: they show, stop, kill and start the nodes of --nodes.

    Settings come from --set and from KAFKA_… variables; --set takes precedence. Unless advertised.listeners is set,
    each client gets the address it connected to as the broker's address.

    \b
    Examples:
      millbeck up
      millbeck up --data /var/lib/millbeck --port 9092
      millbeck up --memory --port 0 --set num.partitions=4
      millbeck up --secure
      millbeck up --nodes 3
      millbeck up --nodes 3 --racks a,b,c
      millbeck up status
      millbeck up kill 2
    """
    if ctx.invoked_subcommand is not None:
        return
    if not data:
        raise click.UsageError("--data is empty: give a directory, or use --memory")
    if not memory:
        from millbeck.cli.nodes.up_directory import check_directory

        check_directory(data, node_count=nodes, is_secure=secure)
    if secure:
        from millbeck.host.certificate_authority import EXTRA, is_installed

        if not is_installed():
            raise click.ClickException(f"--secure needs a package that is not installed: {EXTRA}")
    if nodes > 1:
        from millbeck.cli.nodes.up_cluster import parse_racks, run_cluster

        if check:
            raise click.UsageError("--check works with one node only: leave out --nodes")
        root = _memory_directory() if memory else os.path.abspath(data)
        try:
            run_cluster(
                nodes,
                directory=root,
                is_memory=memory,
                host=host,
                port=port,
                metrics_port=METRICS_PORT if metrics_port is None else metrics_port,
                settings=settings,
                racks=parse_racks(racks, nodes) if racks is not None else (),
                is_fast=failover == "fast",
                is_secure=secure,
                verbose=verbose,
            )
        finally:
            if memory:
                import shutil

                shutil.rmtree(root, ignore_errors=True)
        return
    for option in ("racks", "failover"):
        if ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{option} needs --nodes greater than 1")
    given = given_settings(ctx)
    if memory and given.count("log.dirs") > 1:
        raise click.UsageError("--memory and --data cannot be combined")
    from millbeck.cli.nodes.up_node import run_single_node

    run_single_node(
        _memory_directory() if memory else os.path.abspath(data),
        is_memory=memory,
        host=host,
        port=port,
        metrics_port=metrics_port,
        settings=settings,
        given=given,
        is_secure=secure,
        check=check,
        verbose=verbose,
    )


def given_settings(ctx: click.Context) -> list[str]:
    """The settings set through other options of the command line."""
    settings = {
        "data": "log.dirs",
        "memory": "log.dirs",
        "host": "listeners",
        "port": "listeners",
        "metrics_port": "metrics.http.port",
    }
    on_line = click.core.ParameterSource.COMMANDLINE
    return [setting for name, setting in settings.items() if ctx.get_parameter_source(name) is on_line]


def _memory_directory() -> str:
    """A temporary directory, removed on exit; on a memory file system where there is one."""
    import tempfile

    shared = "/dev/shm"
    return tempfile.mkdtemp(prefix="millbeck-", dir=shared if os.access(shared, os.W_OK) else None)


for verb in (status, stop, start, kill):
    command.add_command(verb)
