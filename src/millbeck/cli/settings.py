"""Settings from the command line, the environment and a file, the stronger first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import merged_settings, parse_properties, settings_of_environment, settings_of_flags

if TYPE_CHECKING:
    from millbeck.server.config import NodeConfig


def node_config(path: str, flags: Iterable[str], environment: Mapping[str, str]) -> NodeConfig:
    """The configuration of a node; a key nobody knows is warned of, as Kafka does."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        settings = merged_settings(file_text=text, environment=environment, flags=flags)
        in_file = parse_properties(text)
    except (OSError, UnicodeDecodeError, InvalidConfig) as error:
        from millbeck.cli.connecting import file_problem

        raise click.ClickException(file_problem(path, error)) from error
    return _checked(settings, named=in_file, where=path)


def embedded_config(
    defaults: Mapping[str, str],
    flags: Iterable[str],
    environment: Mapping[str, str],
    *,
    given: Iterable[str] = (),
) -> NodeConfig:
    """The configuration of a node without a file: ``defaults`` below what environment and flags say.

    Settings in ``given`` were said on the command line in other words, so their default beats the environment.
    """
    try:
        named = settings_of_flags(flags)
    except InvalidConfig as error:
        raise click.UsageError(f"--set: {error}") from error
    said = {name: defaults[name] for name in given}
    settings = {**defaults, **settings_of_environment(environment), **said, **named}
    return _checked(settings, named=named, where="--set")


def _checked(settings: Mapping[str, str], *, named: Iterable[str], where: str) -> NodeConfig:
    from millbeck.server.config import BROKER_OPTIONS, NodeConfig

    try:
        config = NodeConfig(settings)
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    for name in named:
        if name not in BROKER_OPTIONS:
            from millbeck.cli.suggestions import settings_hint

            hint = settings_hint([name], "broker")
            click.echo(f"millbeck: {where}: {name} is not a setting of this release and has no effect{hint}", err=True)
    return config
