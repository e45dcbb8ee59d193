"""The ``millbeck`` command: ``millbeck NOUN VERB``. A command's module is loaded only when it is run."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from millbeck import __version__

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS: Final = {
    "quota": ("millbeck.cli.commands.quota", "Show and change client quotas."),
    "acl": ("millbeck.cli.commands.acl", "Show and change ACLs, and explain what they allow."),
    "audit": (
        "millbeck.cli.commands.audit",
        "Show logins, denied operations and administrative changes.",
    ),
    "cert": ("millbeck.cli.commands.cert", "Create, renew and show certificates."),
    "cluster": ("millbeck.cli.commands.cluster", "Show the cluster's id and nodes."),
    "completion": ("millbeck.cli.commands.completion", "Install or print shell completion."),
    "config": ("millbeck.cli.commands.config", "Show and change settings of topics, brokers and groups."),
    "connect": ("millbeck.cli.commands.connect", "Manage connectors, and check their configurations."),
    "consume": ("millbeck.cli.commands.consume", "Print the records of topics."),
    "demo": ("millbeck.cli.commands.demo", "Run a demo: a node, a stream of orders, a pipeline on Spark."),
    "doctor": ("millbeck.cli.commands.doctor", "Check this machine and a cluster for problems."),
    "dump-log": ("millbeck.cli.commands.dump_log", "Print the content of log files, without a broker."),
    "elect-leaders": ("millbeck.cli.commands.elect_leaders", "Trigger leader elections."),
    "feature": ("millbeck.cli.commands.feature", "Show and change feature levels."),
    "group": ("millbeck.cli.commands.group", "List, describe, reset and delete consumer groups."),
    "share": ("millbeck.cli.commands.share", "List, describe, reset and delete share groups."),
    "log": ("millbeck.cli.commands.log", "Repair the logs of a stopped node."),
    "log-dirs": ("millbeck.cli.commands.log_dirs", "Show the brokers' log directories and their sizes."),
    "perf": ("millbeck.cli.commands.perf", "Measure produce and consume throughput."),
    "pipeline": ("millbeck.cli.commands.pipeline", "Run and manage data pipelines on Spark."),
    "produce": ("millbeck.cli.commands.produce", "Send lines of standard input to a topic."),
    "profile": ("millbeck.cli.commands.profile", "Manage named profiles of brokers and client settings."),
    "quorum": ("millbeck.cli.commands.quorum", "Show and change the metadata quorum."),
    "reassign": ("millbeck.cli.commands.reassign", "Move partitions to other brokers."),
    "registry": ("millbeck.cli.commands.registry", "Run a schema registry, or manage the schemas of one."),
    "server": ("millbeck.cli.commands.server", "Run a node with a server.properties file."),
    "shims": ("millbeck.cli.kafka_tools.shims", "Install executables named like Kafka's tools."),
    "storage": ("millbeck.cli.commands.storage", "Format log directories, or show their state."),
    "token": ("millbeck.cli.commands.token", "Create, show, renew and expire delegation tokens."),
    "topic": ("millbeck.cli.commands.topic", "List, create, describe, change and delete topics."),
    "txn": ("millbeck.cli.commands.txn", "List, describe and abort transactions."),
    "user": ("millbeck.cli.commands.user", "Create and delete SCRAM users, and change their passwords."),
    "up": ("millbeck.cli.commands.up", "Run a node or a local cluster without a configuration file."),
}
"""Module and summary by name: a command's module is imported only when used, so that help stays fast."""
_NUMBER_EXPECTED: Final = ("is not a valid integer range", "is not a whole number")
"""click's texts for a value that is not a number, and the replacements."""
INTERRUPTED: Final = 130
PIPE_BROKEN: Final = 141
"""The exit code shells report for a process ended by SIGPIPE (128 + 13), as under ``| head``."""


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

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands, without importing their modules, and the options."""
        from click.shell_completion import CompletionItem

        names = (name for name in sorted(COMMANDS) if name.startswith(incomplete))
        found = [CompletionItem(name, help=COMMANDS[name][1]) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)

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
        *,
        failure_exit_code: int = 1,
        **extra: Any,
    ) -> NoReturn:
        """Run a command and exit; a failure is one line on standard error and exit code 1.

        ``failure_exit_code`` is the exit code of failures that are not usage errors.
        """
        try:
            result = super().main(args, prog_name or "millbeck", complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            exit_code = 1 if isinstance(error, click.UsageError) else failure_exit_code
            fail(error, extra.get("obj"), exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(result if isinstance(result, int) else 0)

    def make_context(self, *arguments: Any, **keywords: Any) -> click.Context:
        with exit_on_broken_pipe():
            return super().make_context(*arguments, **keywords)

    def invoke(self, ctx: click.Context) -> Any:
        with exit_on_broken_pipe():
            return super().invoke(ctx)


@contextmanager
def exit_on_broken_pipe() -> Iterator[None]:
    """Exit without a message when the reader of the output has closed the pipe."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        raise click.exceptions.Exit(PIPE_BROKEN) from None


def _drop_output() -> None:
    """Redirect closed outputs to /dev/null, so that the interpreter's final flush does not fail."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nowhere, stream.fileno())


def fail(error: click.ClickException, kafka_tool: str | None = None, exit_code: int = 1) -> NoReturn:
    """Print the error as one line and exit; ``kafka_tool`` is the name of the Kafka tool, if one was called."""
    try:
        click.echo(_text_of(error, kafka_tool), err=True)
    except BrokenPipeError:
        _drop_output()
    sys.exit(exit_code)


def _text_of(error: click.ClickException, kafka_tool: str | None) -> str:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error.format_message()
    message = " ".join(error.format_message().split()).replace(*_NUMBER_EXPECTED)
    if kafka_tool is not None:
        hint = f" (see {kafka_tool} --help)" if isinstance(error, click.UsageError) else ""
        return f"{kafka_tool}: {message}{hint}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return f"millbeck: {message}{hint}"


EPILOG: Final = """\
Exit codes: 0 success, 1 failure (one line on standard error), 130 interrupted, 141 the reader closed the output
pipe. `consume` exits with 0 when interrupted, `up` and `server` when told to stop.
"""


@click.group(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EPILOG)
@click.version_option(__version__, prog_name="millbeck")
def cli() -> None:
    """A commit log that speaks Apache Kafka's protocol."""


def main() -> None:
    prepare_process()
    cli()


def prepare_process() -> None:
    """Check the interpreter, and make sure that output in any encoding succeeds."""
    if not __debug__:
        sys.exit("millbeck: Python's -O disables assertions that this program needs; run it without -O")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Characters the terminal cannot encode are printed as escapes.
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    main()
