"""``millbeck pipeline``: run, list, stop and restart pipelines on Spark."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from millbeck.pipeline.running.definition import Definition
    from millbeck.pipeline.running.lag import Lags
    from millbeck.pipeline.running.progress import BatchProgress
    from millbeck.pipeline.running.run_directory import RunDirectory

STOP_SECONDS_MAX: Final = 60.0
START_SECONDS_MAX: Final = 60.0
LOG_LINES: Final = 50


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Run and manage pipelines on Spark, defined by a Python file with build(topology) or, if simple, a TOML file."""


def _file_options(function: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--master", metavar="MASTER", help="The Spark master: local[*], spark://…, yarn, k8s://… or sc://…"
        ),
        click.option(
            "-b",
            "--bootstrap-server",
            "bootstrap_servers",
            metavar="HOST:PORT,…",
            envvar="MILLBECK_BOOTSTRAP",
            show_envvar=True,
            help="Bootstrap servers of the cluster.",
        ),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        function = option(function)
    return function


@command.command("run")
@_file_options
@click.option("--checkpoint", metavar="DIRECTORY", help="Spark's checkpoint directory; may be in an object store.")
@click.option(
    "--trigger",
    metavar="INTERVAL",
    help='The interval of batches, such as "1 second", or real-time, or "real-time 30s".',
)
@click.option("--once", is_flag=True, help="Process the records that exist now and stop.")
@click.option(
    "--attempts", type=click.IntRange(min=0), help="Stop after this many consecutive failures; default: no limit."
)
@click.option("-d", "--detach", is_flag=True, help="Run in the background.")
def run(
    file: Path,
    bootstrap_servers: str | None,
    master: str | None,
    checkpoint: str | None,
    trigger: str | None,
    once: bool,
    attempts: int | None,
    detach: bool,
) -> None:
    """Run a pipeline until Ctrl-C, restarting it when it fails.

    \b
    Examples:
      millbeck pipeline run revenue.py
      millbeck pipeline run revenue.py --master spark://host:7077 --checkpoint s3a://bucket/revenue
      millbeck pipeline run large-orders.toml --once
      millbeck pipeline run enrichment.py --trigger real-time
    """
    with _one_line_errors():
        definition = _load(file).with_settings(
            bootstrap_servers=bootstrap_servers, master=master, checkpoint=checkpoint, trigger=trigger
        )
        directory = _directory(definition.settings.name)
        if detach:
            _detach(directory, sys.argv[1:])
            return
        _need_spark()
        with directory.held():
            _run_kept(definition, directory, once=once, attempts=attempts)


def _run_kept(definition: Definition, directory: RunDirectory, *, once: bool, attempts: int | None) -> None:
    """Run the pipeline in a child process, and start another child when it is killed."""
    from millbeck.pipeline.errors import DriverLost
    from millbeck.pipeline.running.backoff import RestartBackoff
    from millbeck.pipeline.running.supervisor import LOST, Supervisor

    name = definition.settings.name

    def report(text: str) -> None:
        click.echo(f"{name}: {text}", err=True)

    directory.write_status(state="starting", process=os.getpid(), error=None, restarts=0)
    exit_status = Supervisor(directory, RestartBackoff(attempts), report=report).keep()
    if exit_status is not None:
        sys.exit(exit_status)
    from millbeck.pipeline.running.runner import Runner
    from millbeck.pipeline.spark_output import is_not_logged_by_py4j

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(is_not_logged_by_py4j)
    report(f"starting Spark ({definition.settings.master}); Ctrl-C stops it")

    def watch(progress: BatchProgress) -> None:
        click.echo(f"{name}: {progress.line()}")

    try:
        Runner(definition, directory, report=report, watch=watch, once=once, attempts_max=attempts).run()
    except DriverLost as error:
        report(str(error))
        sys.exit(LOST)


@command.command("validate")
@_file_options
def validate(file: Path, bootstrap_servers: str | None, master: str | None) -> None:
    """Build a pipeline without running it, and print its sources, shuffles, state stores and sinks.

    \b
    Examples:
      millbeck pipeline validate revenue.py
    """
    with _one_line_errors():
        definition = _load(file).with_settings(bootstrap_servers=bootstrap_servers, master=master)
        _need_spark()
        from millbeck.pipeline.running.runner import started
        from millbeck.pipeline.running.triggers import parse_trigger
        from millbeck.pipeline.topology.budget import budget_lines

        spark, topology = started(definition, lambda text: click.echo(text, err=True))
        try:
            for line in topology.outline.lines():
                click.echo(line)
            for line in budget_lines(topology):
                click.echo(line)
            click.echo(f"latency  {parse_trigger(definition.settings.trigger).latency}")
        finally:
            spark.stop()


@command.command("jars")
def jars() -> None:
    """Fetch the jars that real-time mode needs, and print where they are.

    They are fetched from the Maven repository at MILLBECK_MAVEN into ~/.cache/millbeck/jars, unless MILLBECK_JARS names
    another directory.

    \b
    Examples:
      MILLBECK_MAVEN=https://jars.example.com/maven2 millbeck pipeline jars
    """
    from millbeck.pipeline.running.connector import connector_jars

    with _one_line_errors():
        for jar in connector_jars(lambda text: click.echo(text, err=True)):
            click.echo(str(jar))


@command.command("list")
@output_option
def list_runs(output: str) -> None:
    """List the pipelines run on this machine.

    \b
    Examples:
      millbeck pipeline list
    """
    from millbeck.pipeline.running.lag import Lags
    from millbeck.pipeline.running.run_directory import all_runs, runs_directory

    lags = Lags()
    show_rows([_summary(directory, lags) for directory in all_runs(runs_directory())], output)


@command.command("status")
@output_option
@click.argument("name")
def status(name: str, output: str) -> None:
    """Show the state and progress of a pipeline.

    \b
    Examples:
      millbeck pipeline status revenue
      millbeck pipeline status revenue -o json
    """
    from millbeck.pipeline.running.lag import Lags

    directory = _known(name)
    described = {**directory.status(), "state": directory.state()}
    if described.get("progress"):
        described["progress"] = {**described["progress"], "lag": Lags().of(described)}
    else:
        described["lag"] = Lags().of(described)
    if output != TABLE:
        show(described, output)
        return
    progress = described.pop("progress", None) or {}
    described.pop("at", None)
    for label, value in {**described, **progress}.items():
        if value is not None:
            click.echo(f"{label.replace('_', ' '):<18} {value}")


@command.command("stop")
@click.argument("name")
def stop(name: str) -> None:
    """Stop a pipeline after its current batch.

    \b
    Examples:
      millbeck pipeline stop revenue
    """
    _stop(_known(name))
    click.echo(f"{name} stopped")


@command.command("skip")
@click.argument("name")
@click.argument("records", nargs=-1, required=True, metavar="TOPIC:PARTITION:OFFSET...")
def skip(name: str, records: tuple[str, ...]) -> None:
    """Make a pipeline skip single records, from its next start on.

    The message of a failure names the record. Skipped records are listed in the pipeline's log, and with exactly-once
    delivery also in the note of the next batch, which is part of its transaction.

    \b
    Examples:
      millbeck pipeline skip revenue orders:0:1234
    """
    from millbeck.pipeline.running.skips import SkippedRecord, Skips

    directory = _known(name)
    with _one_line_errors():
        parsed = [SkippedRecord.parse(text) for text in records]
        status = directory.status()
        topics = [*(status.get("topics") or []), *(status.get("tables") or [])]
        for record in parsed:
            if topics and record.topic not in topics:
                raise click.ClickException(f"{name} does not read {record.topic}; it reads {', '.join(topics)}")
        kept = Skips(directory.path).add(parsed)
    click.echo(f"{name} skips {', '.join(map(str, kept))}")
    if directory.is_held():
        click.echo(f"it is running: use millbeck pipeline restart {name} to apply this")


@command.command("restart")
@click.argument("name")
def restart(name: str) -> None:
    """Stop a pipeline and start it again from its checkpoint, in the background.

    \b
    Examples:
      millbeck pipeline restart revenue
    """
    directory = _known(name)
    known = directory.status()
    missing = [part for part in ("file", "checkpoint", "master", "bootstrap_servers") if part not in known]
    if missing:
        raise click.ClickException(f"{name} cannot be restarted, it was never fully started: use millbeck pipeline run")
    if directory.is_held():
        _stop(directory)
    arguments = ["pipeline", "run", str(known["file"]), "--checkpoint", str(known["checkpoint"])]
    if known.get("trigger"):
        arguments += ["--trigger", str(known["trigger"])]
    arguments += ["--master", str(known["master"]), "--bootstrap-server", str(known["bootstrap_servers"])]
    _detach(directory, arguments)


@command.command("logs")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines.")
@click.option("-n", "--lines", default=LOG_LINES, show_default=True, help="Number of last lines to print.")
@click.argument("name")
def logs(name: str, lines: int, follow: bool) -> None:
    """Print the log of a pipeline that runs in the background.

    \b
    Examples:
      millbeck pipeline logs revenue --follow
    """
    directory = _known(name)
    if not directory.log.exists():
        raise click.ClickException(f"{name} runs in a terminal and has no log file")
    with open(directory.log, encoding="utf-8", errors="replace") as log:
        for line in log.readlines()[-lines:]:
            click.echo(line, nl=False)
        while follow:
            line = log.readline()
            if line:
                click.echo(line, nl=False)
            elif not directory.is_held():
                return
            else:
                time.sleep(0.3)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Convert an error that the user can fix into a one-line message."""
    from millbeck.pipeline.error_summaries import explained
    from millbeck.pipeline.errors import PipelineError

    try:
        yield
    except PipelineError as error:
        raise click.ClickException(str(error)) from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("pyspark", "py4j"):
            raise
        raise click.ClickException(str(explained(error))) from error


def _load(file: Path) -> Definition:
    from millbeck.pipeline.running.definition import load

    return load(file)


def _need_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed ({error}): pip install 'millbeck[spark]'") from error


def _directory(name: str) -> RunDirectory:
    from millbeck.pipeline.running.run_directory import RunDirectory, runs_directory

    return RunDirectory(runs_directory(), name)


def _known(name: str) -> RunDirectory:
    from millbeck.cli.suggestions import did_you_mean
    from millbeck.pipeline.running.run_directory import all_runs, runs_directory

    directory = _directory(name)
    if not directory.status():
        known = [run.name for run in all_runs(runs_directory())]
        raise click.ClickException(f"no pipeline {name!r} was run here{did_you_mean(name, known)}")
    return directory


def _summary(directory: RunDirectory, lags: Lags) -> dict[str, Any]:
    known = directory.status()
    progress = known.get("progress") or {}
    return {
        "name": directory.name,
        "state": directory.state(),
        "process": known.get("process") if directory.is_held() else None,
        "batch": progress.get("batch"),
        "rows/s": round(progress.get("rows_per_second", 0)),
        "lag": lags.of(known),
        "file": known.get("file"),
    }


def _stop(directory: RunDirectory) -> None:
    process = directory.process_id()
    if process is None or not directory.is_held():
        raise click.ClickException(f"{directory.name} is not running")
    os.kill(process, signal.SIGTERM)
    ends_at = time.monotonic() + STOP_SECONDS_MAX
    while directory.is_held():
        if time.monotonic() > ends_at:
            raise click.ClickException(
                f"{directory.name} (process {process}) has not stopped in {STOP_SECONDS_MAX:.0f} s"
            )
        time.sleep(0.1)


def _detach(directory: RunDirectory, arguments: list[str]) -> None:
    """Start the same command as a process that outlives this one, with its output in the run's log file."""
    kept = [argument for argument in arguments if argument not in ("-d", "--detach")]
    directory.path.mkdir(parents=True, exist_ok=True)
    with open(directory.log, "ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "millbeck.cli.main", *kept],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    ends_at = time.monotonic() + START_SECONDS_MAX
    while directory.process_id() != process.pid and time.monotonic() < ends_at:
        if process.poll() is not None:
            raise click.ClickException(
                f"{directory.name} ended immediately; see: millbeck pipeline logs {directory.name}"
            )
        time.sleep(0.1)
    click.echo(f"{directory.name} runs in the background (process {process.pid}); its log is {directory.log}")
