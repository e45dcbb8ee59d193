from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli.verbs import VerbGroup, is_spelled_as_kafka, one_of_both, with_verb_first

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
    ],
)
def test_a_verb_may_follow_where_the_cluster_is(given: list[str], expected: list[str]) -> None:
    assert with_verb_first(given, {}, VERBS) == expected


def test_a_group_runs_the_verb_its_flag_names() -> None:
    ran: list[str] = []
    group = VerbGroup("topic", flags=FLAGS)

    @group.command("create")
    @click.option("--topic")
    def create(topic: str) -> None:
        ran.append(topic)

    group.main(["--topic", "x", "--create"], standalone_mode=False)
    assert ran == ["x"]


def test_names_come_as_arguments_or_in_lists() -> None:
    context = click.Context(click.Command("x"))
    assert one_of_both(context, ("a",), ("b,c", "a"), "topic") == ("a", "b", "c")
    with pytest.raises(click.UsageError, match="which topic"):
        one_of_both(context, (), (), "topic")


def test_mistyped_verbs_are_guessed_in_both_spellings(fails: Callable[..., str]) -> None:
    assert fails("topic", "lsit").startswith("no such command 'lsit', did you mean list?")
    assert fails("topic", "--lsit").startswith("no such option --lsit, did you mean --list?")
    assert "first say what to do: create, list" in fails("topic", "--topic", "x")


@pytest.mark.parametrize(("arguments", "expected"), [(["list"], False), (["--list"], True)])
def test_a_verb_knows_how_it_was_spelled(arguments: list[str], expected: bool) -> None:
    seen: list[bool] = []

    @click.group(cls=VerbGroup, flags=FLAGS)
    def group() -> None: ...

    @group.command("list")
    @click.pass_context
    def listing(ctx: click.Context) -> None:
        seen.append(is_spelled_as_kafka(ctx))

    group.main(arguments, standalone_mode=False)
    assert seen == [expected]
