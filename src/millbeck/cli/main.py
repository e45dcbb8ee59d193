"""The ``millbeck`` command: one word for what, one for what to do with it. Commands are loaded when they are called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from millbeck import __version__

COMMANDS: Final = {
    "config": ("millbeck.cli.config", "Show and change settings of topics, brokers and groups."),
    "consume": ("millbeck.cli.consume", "Print the records of topics."),
    "doctor": ("millbeck.cli.doctor", "Look for what keeps a node from running well here."),
    "dump-log": ("millbeck.cli.dump_log", "Print what log files hold, without a broker."),
    "group": ("millbeck.cli.group", "List, describe, reset and delete consumer groups."),
    "log-dirs": ("millbeck.cli.log_dirs", "Show the brokers' log directories and what lies in them."),
    "perf": ("millbeck.cli.perf", "Measure how fast records go in and out."),
    "produce": ("millbeck.cli.produce", "Send lines as records to a topic."),
    "quorum": ("millbeck.cli.quorum", "Show the quorum that keeps the metadata."),
    "server": ("millbeck.cli.server", "Run a node with a server.properties file."),
    "storage": ("millbeck.cli.storage", "Format log directories, or look at them."),
    "topic": ("millbeck.cli.topic", "List, create, describe, change and delete topics."),
    "up": ("millbeck.cli.up", "Run a node with everything set up for you."),
}
"""Name to module and summary: a command's module is imported only when it is used, so that help stays quick."""
INTERRUPTED: Final = 130


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


def _fail(error: click.ClickException) -> NoReturn:
    message = " ".join(error.format_message().split())
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    click.echo(f"millbeck: {message}{hint}", err=True)
    sys.exit(1)


@click.group(cls=MainGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="millbeck")
def cli() -> None:
    """A commit log that speaks Apache Kafka's protocol."""


def main() -> None:
    if not __debug__:
        sys.exit("millbeck: Python's -O switches off assertions that this program relies on; run it without")
    cli()


if __name__ == "__main__":
    main()
