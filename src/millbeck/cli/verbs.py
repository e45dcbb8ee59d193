"""Groups of commands whose verbs may also be written as Kafka's scripts do.

``millbeck topic create orders`` and ``millbeck topic --bootstrap-server host:9092 --create --topic orders`` are one
command, so that scripts move over by changing the program's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click

AS_KAFKA: Final = "millbeck.spelled_as_kafka"


class VerbGroup(click.Group):
    """``flags`` are the verbs' spellings as options: ``{"--create": "create"}``."""

    def __init__(self, *arguments: Any, flags: Mapping[str, str], **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.flags = dict(flags)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ordered = with_verb_first(args, self.flags, self.commands)
        ctx.meta[AS_KAFKA] = ordered is not args
        try:
            return super().parse_args(ctx, ordered)
        except click.NoSuchOption as error:
            from millbeck.cli.suggestions import did_you_mean

            name = error.option_name
            hint = did_you_mean(name, self.flags) or f"; first say what to do: {', '.join(self.commands)}"
            raise click.UsageError(f"no such option {name}{hint}", ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            from millbeck.cli.suggestions import did_you_mean

            hint = did_you_mean(args[0], self.commands) or f"; it is one of {', '.join(self.commands)}"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


def is_spelled_as_kafka(ctx: click.Context) -> bool:
    """Whether the verb was an option, as in a script that was written for Kafka's tools."""
    return bool(ctx.meta.get(AS_KAFKA))


def with_verb_first(arguments: list[str], flags: Mapping[str, str], verbs: Mapping[str, object]) -> list[str]:
    """The arguments with a verb that was given as an option in its place; untouched when they begin with a verb."""
    if arguments and arguments[0] in verbs:
        return arguments
    for position, argument in enumerate(arguments):
        if argument in flags:
            return [flags[argument], *arguments[:position], *arguments[position + 1 :]]
    position = 0
    while position < len(arguments) and arguments[position].startswith("--"):
        position += 1 if "=" in arguments[position] else 2
    if 0 < position < len(arguments) and arguments[position] in verbs:
        # As in `kafka-features --bootstrap-server host:9092 describe`.
        return [arguments[position], *arguments[:position], *arguments[position + 1 :]]
    return arguments


def one_of_both(ctx: click.Context, positional: tuple[str, ...], option: tuple[str, ...], what: str) -> tuple[str, ...]:
    """Names given as arguments or, as Kafka's tools want them, by an option that also takes lists with commas."""
    names = (*positional, *(name for text in option for name in text.split(",") if name))
    if not names:
        raise click.UsageError(f"which {what}?", ctx)
    return tuple(dict.fromkeys(names))
