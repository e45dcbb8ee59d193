"""What the commands of both kinds of groups ask of what they are given."""

from __future__ import annotations

import asyncio
from typing import Any

import click
import pytest

from millbeck.cli.group_verbs import check_execution, check_topics, delete_groups, one_group
from millbeck.client.admin.outcomes import Outcomes
from millbeck.kernel.errors import NonEmptyGroup

CONTEXT = click.Context(click.Command("group"))


def test_one_group_is_named_in_one_way_or_the_other() -> None:
    assert one_group(CONTEXT, "g", None) == one_group(CONTEXT, None, "g") == one_group(CONTEXT, "g", "g") == "g"
    for name, option, problem in ((None, None, "which group"), ("g", "h", "one group at a time")):
        with pytest.raises(click.UsageError, match=problem):
            one_group(CONTEXT, name, option)


def test_contradictions_are_refused() -> None:
    check_execution(CONTEXT, dry_run=True, execute=False)
    check_topics(CONTEXT, ["t"], all_topics=False)
    check_topics(CONTEXT, [], all_topics=True)
    with pytest.raises(click.UsageError, match="exclude each other"):
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
