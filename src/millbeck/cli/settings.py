"""Settings from the command line, the environment and a file, the stronger first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import click

from millbeck.cli.retired import refuse_retired, replacement_of
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
        raise click.ClickException(f"{path}: {error}") from error
    _warn_of_unknown(in_file, path)
    return checked_config(settings, path)


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
    _warn_of_unknown(named, "--set")
    said = {name: defaults[name] for name in given}
    return checked_config({**defaults, **settings_of_environment(environment), **said, **named}, "settings")


def checked_config(settings: dict[str, str], where: str) -> NodeConfig:
    """Raises when a setting is gone or has a value it cannot have."""
    from millbeck.server.config import NodeConfig

    _rename_broker_id(settings, where)
    refuse_retired(settings, where)
    try:
        return NodeConfig(settings)
    except InvalidConfig as error:
        raise click.ClickException(f"{where}: {error}") from error


def _rename_broker_id(settings: dict[str, str], where: str) -> None:
    """Kafka still takes ``broker.id`` for ``node.id``, so files that have it must go on working."""
    old = settings.pop("broker.id", None)
    if old is None:
        return
    if settings.setdefault("node.id", old) != old:
        raise click.ClickException(
            f"{where}: broker.id is {old} but node.id is {settings['node.id']}; use node.id alone"
        )
    click.echo(f"millbeck: {where}: broker.id is taken for node.id, which has replaced it", err=True)


def _warn_of_unknown(names: Iterable[str], where: str) -> None:
    from millbeck.server.config import BROKER_OPTIONS
    from millbeck.storage.config import TOPIC_OPTIONS

    defaults_of_topics = {synonym.name for declared in TOPIC_OPTIONS for synonym in declared.synonyms}
    for name in names:
        is_known = name in BROKER_OPTIONS or name in defaults_of_topics or name == "broker.id"
        if not is_known and replacement_of(name) is None:
            click.echo(f"millbeck: {where}: {name} is not a setting of this release and has no effect", err=True)
