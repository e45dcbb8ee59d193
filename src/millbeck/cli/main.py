"""The ``millbeck`` command: one word for what, one for what to do with it. Commands are loaded when they are called."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Final

import click

from millbeck import __version__

COMMANDS: Final = {
    "server": ("millbeck.cli.server", "Run a node with a server.properties file."),
    "storage": ("millbeck.cli.storage", "Format log directories, or look at them."),
    "up": ("millbeck.cli.up", "Run a node with everything set up for you."),
}
"""Name to module and summary: a command's module is imported only when it is used, so that help stays quick."""


class LazyGroup(click.Group):
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


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="millbeck")
def cli() -> None:
    """A commit log that speaks Apache Kafka's protocol."""


def main() -> None:
    if not __debug__:
        sys.exit("millbeck: Python's -O switches off assertions that this program relies on; run it without")
    cli()


if __name__ == "__main__":
    main()
