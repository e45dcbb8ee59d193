"""Merge node settings from the command line, the environment and a file, in this order of precedence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from errno import EFBIG
from typing import TYPE_CHECKING, Final

import click

from millbeck.kernel.config_providers import resolved_settings
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.properties import parse_properties, settings_of_environment, settings_of_flags

if TYPE_CHECKING:
    from millbeck.server.config import NodeConfig

PROVIDED_LENGTH_MAX: Final = 1024 * 1024


def node_config(path: str, flags: Sequence[str], environment: Mapping[str, str]) -> NodeConfig:
    """The configuration of a node; an unknown key is a warning in the file, as in Kafka, and an error in ``flags``."""
    named = settings_of_options(flags)
    try:
        in_file = read_properties(path, environment)
        settings = in_file | settings_of_environment(environment) | named
    except (OSError, UnicodeDecodeError, InvalidConfig) as error:
        from millbeck.cli.connection_options import file_problem

        raise click.ClickException(file_problem(path, error)) from error
    config = _checked(settings, named)
    for name, hint in _unknown(in_file):
        click.echo(f"millbeck: {path}: {name} is not a setting of this release and has no effect{hint}", err=True)
    return config


def read_properties(path: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of a properties file, with the values of its config providers. Raises `InvalidConfig`, ``OSError``
    or ``UnicodeDecodeError``."""
    with open(path, encoding="utf-8") as file:
        return provided(parse_properties(file.read()), environment)


def provided(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of one file with the values of its config providers. Raises `InvalidConfig`."""
    return resolved_settings(settings, read_text=_read_secret, environment=environment)


def _read_secret(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        text = file.read(PROVIDED_LENGTH_MAX + 1)
    if len(text) > PROVIDED_LENGTH_MAX:
        raise OSError(EFBIG, f"it has more than {PROVIDED_LENGTH_MAX} characters")
    return text


def embedded_config(
    defaults: Mapping[str, str],
    flags: Iterable[str],
    environment: Mapping[str, str],
    *,
    given: Iterable[str] = (),
) -> NodeConfig:
    """The configuration of a node without a file: ``defaults`` are overridden by environment and flags.

    Settings in ``given`` come from other command-line options, so they override the environment even with their
    defaults.
    """
    named = settings_of_options(flags)
    explicit = {name: defaults[name] for name in given}
    return _checked({**defaults, **settings_of_environment(environment), **explicit, **named}, named)


def settings_of_options(flags: Iterable[str]) -> dict[str, str]:
    """Parse the settings of ``--set``; raises `click.UsageError`."""
    try:
        return settings_of_flags(flags)
    except InvalidConfig as error:
        raise click.UsageError(f"--set: {error}") from error


def _checked(settings: Mapping[str, str], named: Iterable[str]) -> NodeConfig:
    """Validate the configuration; an unknown key in ``named`` is an error, since the user can correct it at once."""
    from millbeck.server.config import NodeConfig

    try:
        config = NodeConfig(settings)
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
    for name, hint in _unknown(named):
        raise click.UsageError(f"--set: {name} is not a setting of this release{hint}")
    return config


def _unknown(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The unknown setting names, each with a suggestion."""
    from millbeck.cli.suggestions import did_you_mean
    from millbeck.server.config import BROKER_OPTIONS

    for name in names:
        if name not in BROKER_OPTIONS:
            yield name, did_you_mean(name, BROKER_OPTIONS.by_name)
