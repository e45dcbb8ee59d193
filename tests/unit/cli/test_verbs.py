from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli.main import cli
from millbeck.cli.verbs import Command, SubcommandGroup, is_kafka_style, one_name, one_of_both, with_verb_first

FLAGS = {"--create": "create", "--list": "list"}
VERBS = dict.fromkeys(FLAGS.values())

CASES = {
    "already first": (["create", "--topic", "x"], ["create", "--topic", "x"]),
    "as a flag": (["--create", "--topic", "x"], ["create", "--topic", "x"]),
    "behind options": (["--bootstrap-server", "h:1", "--list"], ["list", "--bootstrap-server", "h:1"]),
    "a flag that looks like a verb's stays behind a verb": (["list", "--create"], ["list", "--create"]),
    "none": (["--help"], ["--help"]),
    "empty": ([], []),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES.keys())
def test_a_verb_may_be_a_flag_anywhere(given: list[str], expected: list[str]) -> None:
    assert with_verb_first(given, FLAGS, VERBS) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--bootstrap-server", "h:1", "list", "--x"], ["list", "--bootstrap-server", "h:1", "--x"]),
        (["--a=b", "--c", "d", "create"], ["create", "--a=b", "--c", "d"]),
        (["--topic", "list"], ["--topic", "list"]),
        (["--topic", "x", "y", "list"], ["--topic", "x", "y", "list"]),
        (["-b", "h:1", "list"], ["list", "-b", "h:1"]),
        (["-bh:1", "list"], ["list", "-bh:1"]),
        (["--verbose", "-v", "-b", "h:1", "list"], ["list", "--verbose", "-v", "-b", "h:1"]),
        (["-b"], ["-b"]),
    ],
)
def test_a_verb_may_follow_where_the_cluster_is(given: list[str], expected: list[str]) -> None:
    assert with_verb_first(given, {}, VERBS, {"--verbose", "-v"}) == expected


def test_a_group_runs_the_verb_its_flag_names() -> None:
    ran: list[str] = []
    group = SubcommandGroup("topic", flags=FLAGS)

    @group.command("create")
    @click.option("--topic")
    def create(topic: str) -> None:
        ran.append(topic)

    group.main(["--topic", "x", "--create"], standalone_mode=False)
    assert ran == ["x"]


def test_a_group_knows_which_options_of_its_verbs_take_no_value() -> None:
    ran: list[tuple[bool, str]] = []
    group = SubcommandGroup("topic", flags={})

    @group.command("create")
    @click.option("-v", "--verbose", is_flag=True)
    @click.argument("name")
    def create(verbose: bool, name: str) -> None:
        ran.append((verbose, name))

    for arguments in (["--verbose", "create", "x"], ["-v", "create", "x"], ["create", "x", "-v"]):
        group.main(arguments, standalone_mode=False)
    assert ran == [(True, "x")] * 3


def test_one_name_is_given_in_one_way_or_the_other() -> None:
    context = click.Context(click.Command("x"))
    assert one_name(context, "g", None, "group") == one_name(context, None, "g", "group") == "g"
    assert one_name(context, "g", "g", "group") == "g"
    for name, option, problem in ((None, None, "no group given"), ("g", "h", "exactly one group is needed")):
        with pytest.raises(click.UsageError, match=problem):
            one_name(context, name, option, "group")


def test_names_come_as_arguments_or_in_lists() -> None:
    context = click.Context(click.Command("x"))
    assert one_of_both(context, ("a",), ("b,c", "a"), "topic") == ("a", "b", "c")
    with pytest.raises(click.UsageError, match="no topic given"):
        one_of_both(context, (), (), "topic")


SWALLOWED = {
    "a verb": ("topic", "create", "--topic", "--partitions", "3"),
    "Kafka's spelling": ("topic", "--create", "--topic", "--partitions", "3"),
    "a command without verbs": ("up", "--data", "--memory"),
    "a short option": ("produce", "-t", "--sync"),
}


@pytest.mark.parametrize("arguments", SWALLOWED.values(), ids=SWALLOWED.keys())
def test_an_option_does_not_take_the_next_one_for_its_value(
    fails: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    assert "requires an argument" in fails(*arguments)


def test_what_only_looks_like_an_option_is_a_value() -> None:
    command = Command("x", params=[click.Option(["-k", "--key"]), click.Argument(["names"], nargs=-1)])
    assert command.make_context("x", ["--key", "--keys"]).params["key"] == "--keys"
    assert command.make_context("x", ["--key=--key"]).params["key"] == "--key"
    assert command.make_context("x", ["--", "--key", "--key"]).params["names"] == ("--key", "--key")


def test_every_command_looks_at_its_values() -> None:
    def commands_of(group: click.Group) -> list[click.Command]:
        context = click.Context(group)
        found = [group.get_command(context, name) for name in group.list_commands(context)]
        return [
            each
            for command in found
            if command is not None
            for each in (commands_of(command) if isinstance(command, click.Group) else [])
            + ([command] if not isinstance(command, click.Group) or command.invoke_without_command else [])
        ]

    assert [each.name for each in commands_of(cli) if not isinstance(each, Command)] == []


def test_mistyped_verbs_are_guessed_in_both_spellings(fails: Callable[..., str]) -> None:
    assert fails("topic", "lsit").startswith("no such command 'lsit', did you mean list?")
    assert fails("topic", "--lsit").startswith("no such option --lsit, did you mean --list?")
    assert "a verb is missing: create, list" in fails("topic", "--topic", "x")


@pytest.mark.parametrize(("arguments", "expected"), [(["list"], False), (["--list"], True)])
def test_a_verb_knows_how_it_was_spelled(arguments: list[str], expected: bool) -> None:
    seen: list[bool] = []

    @click.group(cls=SubcommandGroup, flags=FLAGS)
    def group() -> None: ...

    @group.command("list")
    @click.pass_context
    def listing(ctx: click.Context) -> None:
        seen.append(is_kafka_style(ctx))

    group.main(arguments, standalone_mode=False)
    assert seen == [expected]
