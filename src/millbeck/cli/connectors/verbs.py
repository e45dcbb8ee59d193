"""``millbeck connect list``, ``create``, ``status`` and the like: connectors of a running cluster of workers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from millbeck.cli.connectors.worker import Worker, worker_command
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import Command

_STATES: Final = ("running", "paused", "stopped")
_TRACE_LINES: Final = 1


@click.command("list", cls=Command)
@output_option
@worker_command
def list_(worker: Worker, output: str) -> None:
    """List connectors with their state and that of their tasks.

    \b
    Examples:
      millbeck connect list
      millbeck connect list --url http://connect:8083 -o json
    """
    found = worker.ask("GET", "connectors", query={"expand": ["status", "info"]})
    rows = [_row(name, each) for name, each in sorted(found.items())]
    show_rows(rows, output, columns=("name", "type", "state", "tasks", "class"))


def _row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    status = found.get("status", {})
    states = [str(task.get("state", "")).lower() for task in status.get("tasks", [])]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    info = found.get("info", {})
    return {
        "name": name,
        "type": info.get("type") or status.get("type", "unknown"),
        "state": str(status.get("connector", {}).get("state", "unassigned")).lower(),
        "tasks": counts or "none",
        "class": info.get("config", {}).get("connector.class", ""),
    }


@click.command("status", cls=Command)
@click.argument("name")
@output_option
@worker_command
def status(name: str, worker: Worker, output: str) -> None:
    """Show a connector and its tasks: state, worker, and why one has failed. The exit code is 1 when one has.

    \b
    Examples:
      millbeck connect status orders
      millbeck connect status orders -o json
    """
    found = worker.ask("GET", "connectors", name, "status")
    parts = [("connector", found["connector"]), *((f"task {each['id']}", each) for each in found["tasks"])]
    if output == TABLE:
        rows = [
            {
                "part": part,
                "state": str(each["state"]).lower(),
                "worker": each.get("worker_id", ""),
                "reason": "\n".join(str(each.get("trace") or "").splitlines()[:_TRACE_LINES]),
            }
            for part, each in parts
        ]
        show_rows(rows, output, columns=("part", "state", "worker", "reason"))
    else:
        show(found, output)
    if any(each["state"] == "FAILED" for _, each in parts):
        raise click.exceptions.Exit(1)


@click.command("create", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--state", type=click.Choice(_STATES), help="The state that a new connector begins in.")
@click.option("--replace", is_flag=True, help="Change the connector if it is there already.")
@worker_command
def create(file: Path, state: str | None, replace: bool, worker: Worker) -> None:
    """Create a connector from a file: JSON as for POST /connectors or PUT …/config, or .properties.

    \b
    Examples:
      millbeck connect create orders-sink.json
      millbeck connect create orders-sink.json --state stopped
      millbeck connect create orders-sink.properties --replace
    """
    from millbeck.cli.commands.connect import settings_of_file

    settings = {name: text for name, text in settings_of_file(file).items() if text is not None}
    name = settings.get("name")
    if not name:
        raise click.ClickException(f"{file}: the connector has no name")
    if replace:
        if state is not None:
            raise click.UsageError("--state is for new connectors; it cannot be given with --replace")
        worker.ask("PUT", "connectors", name, "config", body=settings)
        click.echo(f"{name} is configured")
        return
    body: dict[str, Any] = {"name": name, "config": settings}
    if state is not None:
        body["initial_state"] = state.upper()
    worker.ask("POST", "connectors", body=body)
    click.echo(f"{name} is created{f', {state}' if state not in (None, 'running') else ''}")


@click.command("pause", cls=Command)
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@worker_command
def pause(names: tuple[str, ...], worker: Worker) -> None:
    """Let connectors rest; their tasks stay where they are.

    \b
    Examples:
      millbeck connect pause orders
    """
    _each(names, worker, "PUT", "pause", "is paused")


@click.command("resume", cls=Command)
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@worker_command
def resume(names: tuple[str, ...], worker: Worker) -> None:
    """Let paused or stopped connectors run again.

    \b
    Examples:
      millbeck connect resume orders payments
    """
    _each(names, worker, "PUT", "resume", "is resumed")


@click.command("stop", cls=Command)
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@worker_command
def stop(names: tuple[str, ...], worker: Worker) -> None:
    """Stop connectors and end their tasks; their offsets can then be changed.

    \b
    Examples:
      millbeck connect stop orders
    """
    _each(names, worker, "PUT", "stop", "is stopped")


@click.command("restart", cls=Command)
@click.argument("name")
@click.option("--task", type=click.IntRange(min=0), help="Only this task.")
@click.option("--include-tasks", is_flag=True, help="The connector and its tasks.")
@click.option("--only-failed", is_flag=True, help="Only what has failed.")
@worker_command
def restart(name: str, task: int | None, include_tasks: bool, only_failed: bool, worker: Worker) -> None:
    """Restart a connector, its tasks, or one of them.

    \b
    Examples:
      millbeck connect restart orders --include-tasks --only-failed
      millbeck connect restart orders --task 0
    """
    if task is not None:
        if include_tasks or only_failed:
            raise click.UsageError("--task names what is restarted; leave out --include-tasks and --only-failed")
        worker.ask("POST", "connectors", name, "tasks", str(task), "restart")
        click.echo(f"task {task} of {name} is restarted")
        return
    flags = {"includeTasks": str(include_tasks).lower(), "onlyFailed": str(only_failed).lower()}
    worker.ask("POST", "connectors", name, "restart", query=flags)
    click.echo(f"{name} is restarted")


@click.command("delete", cls=Command)
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@worker_command
def delete(names: tuple[str, ...], worker: Worker) -> None:
    """Delete connectors. Their offsets stay; `offsets --reset` before it forgets them.

    \b
    Examples:
      millbeck connect delete orders
    """
    for name in names:
        worker.ask("DELETE", "connectors", name)
        click.echo(f"{name} is deleted")


def _each(names: tuple[str, ...], worker: Worker, method: str, verb: str, done: str) -> None:
    for name in names:
        worker.ask(method, "connectors", name, verb)
        click.echo(f"{name} {done}")


@click.command("offsets", cls=Command)
@click.argument("name")
@click.option(
    "--set", "file", type=click.Path(path_type=Path), metavar="FILE", help="Set offsets: JSON as -o json shows."
)
@click.option("--reset", is_flag=True, help="Forget all offsets.")
@output_option
@worker_command
def offsets(name: str, file: Path | None, reset: bool, worker: Worker, output: str) -> None:
    """Show from where a connector goes on; for a stopped one, set or forget that.

    \b
    Examples:
      millbeck connect offsets orders
      millbeck connect offsets orders -o json > offsets.json
      millbeck connect offsets orders --set offsets.json
      millbeck connect offsets orders --reset
    """
    if file is not None and reset:
        raise click.UsageError("--set and --reset exclude each other")
    if reset:
        click.echo(worker.ask("DELETE", "connectors", name, "offsets")["message"])
        return
    if file is not None:
        body = {"offsets": _offsets_of(file)}
        click.echo(worker.ask("PATCH", "connectors", name, "offsets", body=body)["message"])
        return
    found = worker.ask("GET", "connectors", name, "offsets")["offsets"]
    if output != TABLE:
        show(found, output)
        return
    rows = [{"partition": json.dumps(each["partition"]), "offset": json.dumps(each["offset"])} for each in found]
    show_rows(rows, output, columns=("partition", "offset"))


def _offsets_of(file: Path) -> Any:
    from millbeck.cli.connection_options import file_problem

    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.ClickException(file_problem(str(file), error)) from error
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"{file}: not JSON: {error}") from error
    return found.get("offsets") if isinstance(found, dict) else found
