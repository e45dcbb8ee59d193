"""Runs one of Kafka's tools: its command line is translated to that of the corresponding millbeck command."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

import click

from millbeck.cli.kafka_tools.tools import TOOLS, Tool
from millbeck.cli.main import cli, fail, prepare_process

KAFKA_RELEASE: Final = "4.3.0"
"""The release of Apache Kafka whose tools are followed; scripts compare the number that --version prints."""
_HELP: Final = ("--help", "-h")
_VARIABLES: Final = ("MILLBECK_BOOTSTRAP", "MILLBECK_PROFILE")
"""Environment variables that Kafka's tools do not have, which are therefore ignored."""


def main(name: str, arguments: Sequence[str]) -> NoReturn:
    """Run the tool ``name``, with or without ``.sh``, and exit with the code of Kafka's tool."""
    prepare_process()
    for variable in _VARIABLES:
        os.environ.pop(variable, None)
    name = name.removesuffix(".sh")
    tool = TOOLS[name]
    if any(word in _HELP for word in arguments):
        show_help(name, tool)
    if "--version" in arguments:
        from millbeck import __version__

        click.echo(f"{KAFKA_RELEASE} (millbeck {__version__})")
        raise SystemExit(0)
    try:
        words = translated(tool, arguments)
    except click.UsageError as error:
        fail(error, name)
    cli.main(words, prog_name=name, obj=name, failure_exit_code=tool.failure_exit_code)


def show_help(name: str, tool: Tool) -> NoReturn:
    """Print the help of the millbeck command; exits with the code of Kafka's tool, which is often that of an error."""
    shown = " ".join(("millbeck", *tool.command))
    click.echo(f"{name} runs {shown}, with Kafka's flags, output and exit codes.\n", err=tool.help_exit_code != 0)
    try:
        cli.main([*tool.command, "--help"])
    except SystemExit:
        raise SystemExit(tool.help_exit_code) from None


def translated(tool: Tool, arguments: Sequence[str]) -> list[str]:
    """The arguments of the millbeck command; raises `click.UsageError` where Kafka's tool would fail as well."""
    command, words = tool.command, list(arguments)
    for position, word in enumerate(words):
        if word in tool.verbs:
            command, words = tool.verbs[word], [*words[:position], *words[position + 1 :]]
            break
    given = _flags(arguments)
    if not any(word in tool.offline_verbs for word in arguments):
        for either in tool.requires:
            if not given.intersection(either):
                raise click.UsageError(f"{' or '.join(each for each in either if each.startswith('--'))} is needed")
    if tool.actions and len(given.intersection(tool.actions)) != 1:
        raise click.UsageError(f"give exactly one of {', '.join(tool.actions)}")
    for action, flags in tool.needed_by.items():
        missing = [flag for flag in flags if action in given and flag not in given]
        if missing:
            raise click.UsageError(f"{action} needs {missing[0]}")
    for flag, others in tool.alone.items():
        found = [other for other in others if flag in given and other in given]
        if found:
            raise click.UsageError(f"{flag} cannot be combined with {found[0]}")
    added = [word for flag, value in tool.defaults.items() if flag not in given for word in (flag, value)]
    return [*command, *_translated_words(tool, words), *added, *tool.always]


def _flags(words: Iterable[str]) -> set[str]:
    return {word.partition("=")[0] for word in words if word.startswith("-")}


def _translated_words(tool: Tool, words: Sequence[str]) -> list[str]:
    found: list[str] = []
    position = 0
    while position < len(words):
        flag, equals, value = (
            words[position].partition("=") if words[position].startswith("--") else (words[position], "", "")
        )
        position += 1
        if flag in tool.missing:
            raise click.UsageError(f"{flag} is not supported: {tool.missing[flag]}")
        if flag in tool.without_effect:
            position += 0 if equals else tool.without_effect[flag]
            continue
        ours = tool.renamed.get(flag, flag)
        if flag in tool.as_setting:
            if not equals:
                if position == len(words):
                    raise click.UsageError(f"{flag} needs a value")
                value = words[position]
                position += 1
            found += ["--command-property", f"{tool.as_setting[flag]}={value}"]
        elif flag in tool.several:
            values = [value] if equals else []
            while position < len(words) and not words[position].startswith("-"):
                values.append(words[position])
                position += 1
            found += [word for each in values for word in (ours, each)]
        else:
            found.append(f"{ours}={value}" if equals else ours)
    return found
