"""What the commands of both kinds of groups ask of what they are given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import click
import pytest

from millbeck.cli.commands.group import command as group
from millbeck.cli.commands.share import command as share
from millbeck.cli.groups.options import check_execution, check_topics, chosen, delete_groups
from millbeck.client.admin.outcomes import Outcomes
from millbeck.kernel.errors import NonEmptyGroup

CONTEXT = click.Context(click.Command("group"))


@pytest.mark.parametrize(
    ("group", "arguments", "expected"),
    [
        (group, ["--state"], {"states": ("",), "target": None}),
        (group, ["--state", "--bootstrap-server", "h:1"], {"states": ("",), "target": "h:1"}),
        (group, ["--type", "--state", "Empty"], {"states": ("Empty",), "types": ("",)}),
        (group, ["--state", "stable,empty", "--state", "dead"], {"states": ("stable,empty", "dead"), "types": ()}),
        (share, ["--state", "-b", "h:1"], {"states": ("",), "target": "h:1"}),
    ],
)
def test_a_filter_needs_no_value_and_takes_no_flag_for_one(
    monkeypatch: pytest.MonkeyPatch, group: click.Group, arguments: list[str], expected: dict[str, object]
) -> None:
    monkeypatch.delenv("MILLBECK_BOOTSTRAP", raising=False)
    context = group.commands["list"].make_context("list", arguments)
    found = {**context.params, "target": context.params["bootstrap_server"]}
    assert {name: found[name] for name in expected} == expected


def test_values_of_filters_are_known_ones() -> None:
    known = ("Empty", "PreparingRebalance")
    assert chosen(CONTEXT, ("empty, preparing_rebalance", ""), known, "--state") == ["empty", "preparing_rebalance"]
    with pytest.raises(click.UsageError, match="--state: 'full' is not one of Empty, PreparingRebalance"):
        chosen(CONTEXT, ("empty,full",), known, "--state")


@pytest.mark.parametrize("arguments", [("group", "describe"), ("group", "delete"), ("share", "describe")])
def test_all_groups_are_not_taken_for_the_one_that_was_named(
    fails: Callable[..., str], arguments: tuple[str, ...]
) -> None:
    for name in (("billing",), ("--group", "billing")):
        assert "--all-groups and names of groups cannot be combined" in fails(*arguments, *name, "--all-groups")
    assert "no group given" in fails(*arguments)


def test_contradictions_are_refused() -> None:
    check_execution(CONTEXT, dry_run=True, execute=False)
    check_topics(CONTEXT, ["t"], all_topics=False)
    check_topics(CONTEXT, [], all_topics=True)
    with pytest.raises(click.UsageError, match="cannot be combined"):
        check_execution(CONTEXT, dry_run=True, execute=True)
    for topics, all_topics in (([], False), (["t"], True)):
        with pytest.raises(click.UsageError, match="--topic or --all-topics"):
            check_topics(CONTEXT, topics, all_topics=all_topics)


def test_what_was_deleted_is_told_and_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    class FakeAdmin:
        async def delete_groups(self, names: list[str]) -> Outcomes[str, None]:
            return Outcomes({names[0]: None, names[1]: NonEmptyGroup("it has members")})

    admin: Any = FakeAdmin()
    with pytest.raises(click.ClickException, match="it has members"):
        asyncio.run(delete_groups(admin, ["gone", "kept"]))
    assert capsys.readouterr().out == "deleted gone\n"
