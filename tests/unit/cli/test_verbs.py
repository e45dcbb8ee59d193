from __future__ import annotations

import click
import pytest

from millbeck.cli.verbs import VerbGroup, one_of_both, with_verb_first

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
