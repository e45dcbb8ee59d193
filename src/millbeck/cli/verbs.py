"""Command groups whose verbs may also be given as flags, as in Kafka's scripts.

``millbeck topic create orders`` and ``millbeck topic --bootstrap-server host:9092 --create --topic orders`` are the
same command, so that scripts can migrate by changing only the program's name.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import pairwise
from typing import Any, Final

import click

AS_KAFKA: Final = "millbeck.spelled_as_kafka"


class Command(click.Command):
    """A command whose options never take another option as their value: ``--topic --partitions 3`` is an error."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [each for each in self.params if isinstance(each, click.Option)]
        names = {name for each in options for name in each.opts if name.startswith("--")}
        # Options with an optional value handle this themselves.
        needs_value = {
            name for each in options if not each.is_flag and not each._flag_needs_value for name in each.opts
        }
        for option, value in pairwise(args[: args.index("--")] if "--" in args else args):
            if option in needs_value and value in names:
                raise click.BadOptionUsage(option, f"Option {option!r} requires an argument.", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            # Flags that were removed are hidden, and not what was meant.
            hidden = {name for each in options if each.hidden for name in each.opts}
            if error.possibilities:
                error.possibilities[:] = [name for name in error.possibilities if name not in hidden]
            raise


class SubcommandGroup(click.Group):
    """A group with verbs as flags: ``flags`` maps each flag to its verb, as in ``{"--create": "create"}``."""

    command_class = Command

    def __init__(self, *arguments: Any, flags: Mapping[str, str], **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.flags = dict(flags)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        switches = {
            name
            for verb in self.commands.values()
            for each in verb.params
            if isinstance(each, click.Option) and each.is_flag
            for name in each.opts
        }
        ordered = with_verb_first(args, self.flags, self.commands, switches | set(ctx.help_option_names))
        ctx.meta[AS_KAFKA] = ordered is not args
        try:
            return super().parse_args(ctx, ordered)
        except click.NoSuchOption as error:
            from millbeck.cli.suggestions import did_you_mean

            name = error.option_name
            hint = did_you_mean(name, self.flags) or f"; a verb is missing: {', '.join(self.commands)}"
            raise click.UsageError(f"no such option {name}{hint}", ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not args[0].startswith("-"):
            from millbeck.cli.suggestions import did_you_mean

            hint = did_you_mean(args[0], self.commands) or f"; it is one of {', '.join(self.commands)}"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


def is_kafka_style(ctx: click.Context) -> bool:
    """Whether the verb was given as a flag, as in scripts for Kafka's tools, or the command runs as one of these tools
    (`kafka_tool`)."""
    return bool(ctx.meta.get(AS_KAFKA)) or kafka_tool() is not None


def kafka_tool() -> str | None:
    """The name of the Kafka tool as which the command runs (see `millbeck.cli.kafka_tools`); the output then has the
    format of that tool."""
    ctx = click.get_current_context(silent=True)
    name = None if ctx is None else ctx.find_root().obj
    return name if isinstance(name, str) else None


def with_verb_first(
    arguments: list[str],
    flags: Mapping[str, str],
    verbs: Mapping[str, object],
    switches: Container[str] = (),
) -> list[str]:
    """Move a verb given as a flag to the front of the arguments; arguments that begin with a verb are unchanged.

    ``switches`` are the options that take no value.
    """
    if arguments and arguments[0] in verbs:
        return arguments
    for position, argument in enumerate(arguments):
        if argument in flags:
            return [flags[argument], *arguments[:position], *arguments[position + 1 :]]
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        option = arguments[position]
        has_value_inside = "=" in option or (not option.startswith("--") and len(option) > len("-x"))
        position += 1 if has_value_inside or option in switches else 2
    if 0 < position < len(arguments) and arguments[position] in verbs:
        # As in `kafka-features --bootstrap-server host:9092 describe`.
        return [arguments[position], *arguments[:position], *arguments[position + 1 :]]
    return arguments


def one_of_both(ctx: click.Context, positional: tuple[str, ...], option: tuple[str, ...], what: str) -> tuple[str, ...]:
    """The names given as arguments or by Kafka's option, which also takes comma-separated lists."""
    names = (*positional, *(name for text in option for name in text.split(",") if name))
    if not names:
        raise click.UsageError(f"no {what} given", ctx)
    return tuple(dict.fromkeys(names))


def one_name(ctx: click.Context, positional: str | None, option: str | None, what: str) -> str:
    """The single name, given as an argument or by an option."""
    names = one_of_both(ctx, (positional,) if positional else (), (option,) if option else (), what)
    if len(names) != 1:
        raise click.UsageError(f"exactly one {what} is needed", ctx)
    return names[0]
