"""``millbeck shims``: executables with the names of Kafka's tools, for scripts that call them."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.kafka_tools.tools import TOOLS
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup

_MARK: Final = "# Written by `millbeck shims install`."
_EXECUTABLE: Final = 0o755


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Install executables with the names of Kafka's tools (kafka-topics.sh, ...), which run millbeck."""


@command.command("install")
@click.argument("directory", type=FILE)
@click.option("--force", is_flag=True, help="Replace files that were not written by this command.")
def install(directory: str, force: bool) -> None:
    """Write an executable for each of Kafka's tools, with and without .sh, into a directory.

    Add the directory to your PATH. Each executable accepts the flags of Kafka's tool (old and new names) and prints the
    same output.

    \b
    Examples:
      millbeck shims install ~/.local/bin
      PATH=~/.local/bin:$PATH kafka-topics.sh --bootstrap-server localhost:9092 --list
    """
    folder = Path(directory)
    paths = {folder / f"{name}{suffix}": name for name in TOOLS for suffix in ("", ".sh")}
    try:
        foreign = [path.name for path in paths if path.is_symlink() or (path.exists() and not _is_ours(path))]
        if foreign and not force:
            raise click.ClickException(
                f"{directory} has files with these names that were not written by this command "
                f"({foreign[0]}, {len(foreign)} in all): choose another directory, or give --force to "
                "replace them"
            )
        folder.mkdir(parents=True, exist_ok=True)
        for path, name in paths.items():
            _write(path, script_of(name))
    except OSError as error:
        raise click.ClickException(f"{error.filename or directory}: {error.strerror}") from error
    click.echo(f"wrote {len(paths)} executables to {directory}")
    if str(folder.resolve()) not in os.environ.get("PATH", "").split(os.pathsep):
        click.echo(f"add it to your PATH: export PATH={shlex.quote(str(folder.resolve()))}:$PATH", err=True)


@command.command("remove")
@click.argument("directory", type=FILE)
def remove(directory: str) -> None:
    """Delete the executables that `install` wrote into a directory, and nothing else.

    \b
    Examples:
      millbeck shims remove ~/.local/bin
    """
    count = 0
    try:
        for name in TOOLS:
            for path in (Path(directory) / name, Path(directory) / f"{name}.sh"):
                if path.is_file() and not path.is_symlink() and _is_ours(path):
                    path.unlink()
                    count += 1
    except OSError as error:
        raise click.ClickException(f"{error.filename or directory}: {error.strerror}") from error
    click.echo(f"deleted {count} executables from {directory}")


@command.command("list")
@output_option
def list_tools(output: str) -> None:
    """Show the tools and the millbeck command that each runs.

    \b
    Examples:
      millbeck shims list
    """
    show_rows(({"tool": name, "runs": " ".join(("millbeck", *tool.command))} for name, tool in TOOLS.items()), output)


def script_of(name: str) -> str:
    """The script of an executable, which runs this package with the current interpreter from any directory (``-P``)."""
    return f'#!/bin/sh\n{_MARK}\nexec {shlex.quote(sys.executable)} -P -m millbeck.cli.kafka_tools {name} "$@"\n'


def _is_ours(path: Path) -> bool:
    with open(path, "rb") as file:
        return _MARK.encode() in file.read(len("#!/bin/sh\n") + len(_MARK))


def _write(path: Path, text: str) -> None:
    """Replace the file atomically, since a script may be running it."""
    staged = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        staged.write_text(text, encoding="utf-8")
        staged.chmod(_EXECUTABLE)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
