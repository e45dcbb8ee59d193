"""Settings from the command line, the environment and a file, the stronger first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import merged_settings, parse_properties, settings_of_flags
from millbeck.server.config import BROKER_OPTIONS, NodeConfig


def flag_settings(settings: Iterable[str]) -> dict[str, str]:
    """``--set key=value`` options as texts."""
    try:
        return settings_of_flags(settings)
    except InvalidConfig as error:
        raise click.UsageError(f"--set: {error}") from error


def node_config(path: str, flags: Iterable[str], environment: Mapping[str, str]) -> NodeConfig:
    """The configuration of a node; a key nobody knows is warned of, as Kafka does."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name in parse_properties(text):
            if name not in BROKER_OPTIONS:
                click.echo(f"millbeck: {path}: {name} is not a setting of this release and has no effect", err=True)
        return NodeConfig(merged_settings(file_text=text, environment=environment, flags=flags))
    except (OSError, UnicodeDecodeError, InvalidConfig) as error:
        raise click.ClickException(f"{path}: {error}") from error
