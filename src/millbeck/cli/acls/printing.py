"""ACLs, changes and explanations as lines of output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from millbeck.cli.acls.explanations import Explanation
    from millbeck.cli.acls.files import Difference
    from millbeck.security.acls import AccessControlEntry


def print_difference(changes: Difference) -> None:
    print_changes("+", changes.missing)
    print_changes("-", changes.surplus)
    if not changes.missing and not changes.surplus:
        click.echo("no changes")


def print_changes(sign: str, entries: Iterable[AccessControlEntry]) -> None:
    from millbeck.cli.acls.words import acl_line

    for entry in entries:
        click.echo(f"{sign} {acl_line(entry)}")


def print_as_kafka(what: str, entries: Iterable[AccessControlEntry]) -> None:
    from millbeck.cli.acls.words import as_kafka, pattern_as_kafka

    by_pattern: dict[str, list[str]] = {}
    for entry in entries:
        by_pattern.setdefault(pattern_as_kafka(entry), []).append(as_kafka(entry))
    for pattern, listed in by_pattern.items():
        click.echo(f"{what} for resource `{pattern}`: ")
        for line in listed:
            click.echo(f" \t{line} ")
        click.echo("")


def print_explanations(alternatives: Iterable[list[Explanation]]) -> None:
    for either in alternatives:
        allowed = [each for each in either if each.decision.is_allowed]
        for position, each in enumerate(allowed[:1] or either):
            if position:
                click.echo("  or instead")
            click.echo("\n".join(each.lines()))


def best(either: list[Explanation]) -> Explanation:
    return next((each for each in either if each.decision.is_allowed), either[-1])


def count(entries: Iterable[AccessControlEntry]) -> str:
    count = len(list(entries))
    return f"{count} ACL{'' if count == 1 else 's'}"
