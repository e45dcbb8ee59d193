"""``millbeck completion``: shell completion for bash, zsh and fish."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from millbeck.cli.verbs import SubcommandGroup

VARIABLE: Final = "_MILLBECK_COMPLETE"


@dataclass(frozen=True, slots=True)
class Shell:
    """The path of a user's completions for a shell, and a hint about further setup."""

    place: Callable[[Mapping[str, str]], Path]
    advice: str


def _in_data(*parts: str) -> Callable[[Mapping[str, str]], Path]:
    def place(environ: Mapping[str, str]) -> Path:
        base = environ.get("XDG_DATA_HOME")
        return (Path(base) if base else Path.home() / ".local" / "share").joinpath(*parts)

    return place


def _fish_place(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "fish" / "completions" / "millbeck.fish"


SHELLS: Final = {
    "bash": Shell(
        _in_data("bash-completion", "completions", "millbeck"),
        "New shells use it; without the package bash-completion, add to ~/.bashrc: source {path}",
    ),
    "zsh": Shell(
        _in_data("zsh", "site-functions", "_millbeck"),
        "Add to ~/.zshrc, before compinit is called: fpath=({directory} $fpath)",
    ),
    "fish": Shell(_fish_place, "New shells use it."),
}


def shell_argument(function: Callable[..., None]) -> Callable[..., None]:
    return click.argument("shell", type=click.Choice(list(SHELLS)), required=False)(function)


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Install or print shell completion for commands, options, topics, groups and settings.

    Names of topics and groups are read from the cluster of the current profile, or of the options typed so far.
    """


@command.command("install")
@shell_argument
def install(shell: str | None) -> None:
    """Install the completion for a shell, by default for that of the variable SHELL.

    \b
    Examples:
      millbeck completion install
      millbeck completion install zsh
    """
    name = _chosen(shell)
    path = SHELLS[name].place(os.environ)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(name), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{error.filename or path}: {error.strerror}") from error
    click.echo(f"wrote {path}")
    click.echo(SHELLS[name].advice.format(path=path, directory=path.parent))


@command.command("show")
@shell_argument
def show_script(shell: str | None) -> None:
    """Print the script that `install` writes.

    \b
    Examples:
      source <(millbeck completion show bash)
    """
    click.echo(script(_chosen(shell)))


def script(shell: str) -> str:
    """The completion script of a shell, which calls this program for completions."""
    from click.shell_completion import get_completion_class

    from millbeck.cli.main import cli

    kind = get_completion_class(shell)
    assert kind is not None, "click supports all shells in SHELLS"
    completion = kind(cli, {}, "millbeck", VARIABLE)
    return completion.source_template % completion.source_vars()


def _chosen(shell: str | None) -> str:
    name = shell or os.path.basename(os.environ.get("SHELL", ""))
    if name not in SHELLS:
        raise click.UsageError(f"name the shell: {', '.join(SHELLS)}")
    return name
