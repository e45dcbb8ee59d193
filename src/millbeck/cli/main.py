"""The ``millbeck`` command: one word for what, one for what to do with it. Commands are loaded when they are called."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from millbeck import __version__

COMMANDS: Final = {
    "cluster": ("millbeck.cli.cluster", "Show the cluster's id and nodes."),
    "config": ("millbeck.cli.config", "Show and change settings of topics, brokers and groups."),
    "consume": ("millbeck.cli.consume", "Print the records of topics."),
    "demo": ("millbeck.cli.demo", "Show the whole: a log, orders, and a pipeline on Spark."),
    "doctor": ("millbeck.cli.doctor", "Look for what keeps a node from running well here."),
    "dump-log": ("millbeck.cli.dump_log", "Print what log files hold, without a broker."),
    "elect-leaders": ("millbeck.cli.elect_leaders", "Have leaders of partitions chosen anew."),
    "feature": ("millbeck.cli.feature", "Show and change feature levels."),
    "group": ("millbeck.cli.group", "List, describe, reset and delete consumer groups."),
    "share": ("millbeck.cli.share", "List, describe, reset and delete share groups."),
    "log-dirs": ("millbeck.cli.log_dirs", "Show the brokers' log directories and what lies in them."),
    "perf": ("millbeck.cli.perf", "Measure how fast records go in and out."),
    "pipeline": ("millbeck.cli.pipeline", "Run data pipelines on Spark, and look after them."),
    "produce": ("millbeck.cli.produce", "Send lines as records to a topic."),
    "quorum": ("millbeck.cli.quorum", "Show the quorum that keeps the metadata."),
    "reassign": ("millbeck.cli.reassign", "Move partitions to other brokers."),
    "server": ("millbeck.cli.server", "Run a node with a server.properties file."),
    "storage": ("millbeck.cli.storage", "Format log directories, or look at them."),
    "topic": ("millbeck.cli.topic", "List, create, describe, change and delete topics."),
    "txn": ("millbeck.cli.txn", "List and describe transactions, and abort those that hang."),
    "up": ("millbeck.cli.up", "Run a node with everything set up for you."),
}
"""Name to module and summary: a command's module is imported only when it is used, so that help stays quick."""
INTERRUPTED: Final = 130
PIPE_BROKEN: Final = 141
"""What a shell sees of a program that a broken pipe has ended (128 and the signal's number), ``head`` being content."""


class MainGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = COMMANDS.get(cmd_name)
        if found is None:
            return None
        command = import_module(found[0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            from millbeck.cli.suggestions import did_you_mean

            raise click.UsageError(f"no such command {args[0]!r}{did_you_mean(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in sorted(COMMANDS.items())])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run a command and exit; what is wrong is one line on standard error and exit code 1."""
        try:
            result = super().main(args, prog_name or "millbeck", complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            _fail(error)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(result if isinstance(result, int) else 0)

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        with pipes_may_break():
            return super().make_context(*arguments, **keywords)

    def invoke(self, ctx: click.Context) -> Any:
        with pipes_may_break():
            return super().invoke(ctx)


@contextmanager
def pipes_may_break() -> Iterator[None]:
    """When nobody reads the output any more, the command ends without a word."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise click.exceptions.Exit(PIPE_BROKEN) from None


def _drop_output() -> None:
    """Nobody reads what is printed: nor shall the interpreter stumble over what is still in its buffers."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def _fail(error: click.ClickException) -> NoReturn:
    try:
        click.echo(_text_of(error), err=True)
    except BrokenPipeError:
        _drop_output()
    sys.exit(1)


def _text_of(error: click.ClickException) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"millbeck: {message}{hint}"


EPILOG: Final = """\
Exit codes: 0 done, 1 failed or refused (one line on standard error says why), 130 interrupted, 141 nobody reads the
output any more. `consume` ends with 0 when it is interrupted, `up` and `server` when they are told to stop.
"""


@click.group(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="millbeck")
def cli() -> None:
    """A commit log that speaks Apache Kafka's protocol."""


def main() -> None:
    if not __debug__:
        sys.exit("millbeck: Python's -O switches off assertions that this program relies on; run it without")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter shows its number.
            stream.reconfigure(errors="backslashreplace")
    cli()


if __name__ == "__main__":
    main()
