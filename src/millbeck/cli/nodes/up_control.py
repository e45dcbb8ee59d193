"""``millbeck up status|stop|start|kill``: show and control the nodes of a ``millbeck up`` in another terminal."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.cli.nodes.running_nodes import Running

COLUMNS = ("node", "state", "pid", "bootstrap", "metrics_port", "uptime_s", "restarts", "data")


def _data_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--data", metavar="DIR", type=FILE, help="The data directory of the cluster, if several are running."
    )(function)


@click.command(cls=Command)
@_data_option
@output_option
def status(data: str | None, output: str) -> None:
    """Show the nodes that `millbeck up` runs.

    \b
    Examples:
      millbeck up status
      millbeck up status --output json
    """
    rows = [row for running in _running(data) for row in _rows_of(running)]
    if output == TABLE:
        show_rows(rows, output, columns=COLUMNS)
    else:
        show(rows, output)


@click.command(cls=Command)
@click.argument("node", type=click.IntRange(1), required=False)
@_data_option
def stop(node: int | None, data: str | None) -> None:
    """Stop a node cleanly until it is started again; without NODE stop all, and `millbeck up` exits.

    \b
    Examples:
      millbeck up stop 2
      millbeck up stop
    """
    running = _one(data)
    if node is None:
        import signal

        os.kill(running.process_id, signal.SIGTERM)
        click.echo(f"asked process {running.process_id} to stop")
        return
    _send_command(running, "stop", node)


@click.command(cls=Command)
@click.argument("node", type=click.IntRange(1))
@_data_option
def start(node: int, data: str | None) -> None:
    """Start a node that was stopped or killed, and wait until it is ready.

    \b
    Examples:
      millbeck up start 2
    """
    _send_command(_one(data), "start", node)


@click.command(cls=Command)
@click.argument("node", type=click.IntRange(1))
@_data_option
def kill(node: int, data: str | None) -> None:
    """Kill a node as in a crash (SIGKILL); it stays down until it is started.

    \b
    Examples:
      millbeck up kill 2
    """
    _send_command(_one(data), "kill", node)


def _send_command(running: Running, verb: str, node: int) -> None:
    from millbeck.cli.nodes.control import ask

    if not running.socket:
        raise click.ClickException(
            "millbeck up runs a single node here: use `millbeck up stop`, or Ctrl-C in its terminal"
        )
    click.echo(ask(running.socket, verb, node))


def _rows_of(running: Running) -> list[dict[str, Any]]:
    if not running.socket:
        return [
            {
                "node": 1,
                "state": "running",
                "pid": running.process_id,
                "bootstrap": running.bootstrap,
                "data": running.data,
            }
        ]
    from millbeck.cli.nodes.control import ask

    rows: list[dict[str, Any]] = ask(running.socket, "status")
    return rows


def _running(data: str | None) -> list[Running]:
    from millbeck.cli.nodes.running_nodes import all_running

    found = all_running()
    if data is not None:
        found = [each for each in found if os.path.realpath(each.data) == os.path.realpath(data)]
    if not found:
        where = f" with --data {data}" if data is not None else ""
        raise click.ClickException(f"millbeck up does not run{where}: start it with `millbeck up --nodes 3`")
    return found


def _one(data: str | None) -> Running:
    found = _running(data)
    if len(found) > 1:
        listed = ", ".join(each.data for each in found)
        raise click.ClickException(f"several are running ({listed}): choose one with --data")
    return found[0]
