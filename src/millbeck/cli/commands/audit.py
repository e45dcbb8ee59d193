"""``millbeck audit``: logins, denied operations and administrative changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.connection_options import Target, run, target_options
from millbeck.cli.output import TEXT, check_reader, document, stream_output_option
from millbeck.cli.verbs import SubcommandGroup
from millbeck.security.audit.events import KINDS

if TYPE_CHECKING:
    from millbeck.cli.audit.selection import Event, Selection
    from millbeck.kernel.environment import Environment

FIELDS: Final = ("principal", "user", "host", "resource", "operation", "api", "kind", "name")


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Show the audit: logins, denied operations, administrative changes, renewed certificates, throttled clients.

    It is read from files (millbeck.audit.file), or from the topic __millbeck_audit (millbeck.audit.topic).
    """


def selection_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that select events, and those for their source."""
    for option in (
        stream_output_option,
        click.option(
            "--name", metavar="NAME", help="Show only changes of this item, such as topic:orders:retention.ms."
        ),
        click.option(
            "--kind", metavar="KIND", help="Show only changes of this kind: topic, acl, user, config, quota, ..."
        ),
        click.option("--api", metavar="NAME", help="Show only events of this request, such as CreateTopics."),
        click.option("--operation", metavar="NAME", help="Show only denials of this operation, such as WRITE."),
        click.option(
            "--resource", metavar="TYPE:NAME", help="Show only denials of this resource, such as TOPIC:orders."
        ),
        click.option("--host", metavar="ADDRESS", help="Show only events from clients with this address."),
        click.option("--user", metavar="NAME", help="Show only failed logins of this user."),
        click.option(
            "--principal", metavar="TYPE:NAME", help="Show only events of this principal, such as User:alice."
        ),
        click.option(
            "--event",
            "kinds",
            multiple=True,
            type=click.Choice(KINDS),
            help="Show only events of this type; can be repeated.",
        ),
        click.option(
            "--file", "files", multiple=True, metavar="FILE", type=FILE, help="Read this file and its rotated files."
        ),
    ):
        function = option(function)
    return function


@command.command("tail")
@selection_options
@click.option(
    "--lines",
    "-n",
    type=click.IntRange(0, 100_000),
    default=20,
    show_default=True,
    help="The maximum number of events to show.",
)
@click.option("--follow", "-f", is_flag=True, help="Continue with new events, until Ctrl-C.")
@target_options
def tail(
    files: tuple[str, ...], kinds: tuple[str, ...], output: str, lines: int, follow: bool, target: Target, **given: Any
) -> None:
    """Show the last events.

    \b
    Examples:
      millbeck audit tail --file /var/log/millbeck/audit.log -f
      millbeck audit tail --event denied --command-config admin.properties
    """
    from millbeck.cli.audit.selection import Selection, parse_events
    from millbeck.cli.audit.sources import FollowedFile, lines_of_files, lines_of_topic, rotated, with_rotated

    if follow and len(files) > 1:
        raise click.UsageError("--follow takes one --file")
    selection = Selection(kinds=kinds, fields=_fields(given))
    last: deque[Event] = deque(maxlen=lines)
    if follow and files:
        followed = FollowedFile(files[0])
        there = [*lines_of_files(reversed(rotated(files[0]))), *followed.present()]
        last.extend(filter(selection.takes, parse_events(there)))
        _show(last, output)
        for event in parse_events(followed.added()):
            if selection.takes(event):
                _show([event], output)
    if files:
        last.extend(filter(selection.takes, parse_events(lines_of_files(with_rotated(files)))))
        _show(last, output)
        return

    async def work(environment: Environment) -> None:
        is_new = False
        async for some in lines_of_topic(environment, target, since_ms=None, follows=follow):
            found = filter(selection.takes, parse_events(some))
            if is_new:
                _show(found, output)
            else:
                last.extend(found)
            if not some:
                _show(last, output)
                is_new = True

    run(work)


@command.command("search")
@selection_options
@click.option(
    "--since",
    metavar="TIME",
    help="Show only events since this time, such as 2026-11-19T14:00, or of the last 15m, 2h or 7d.",
)
@click.option("--until", metavar="TIME", help="Show only events before this time.")
@target_options
def search(
    files: tuple[str, ...],
    kinds: tuple[str, ...],
    output: str,
    since: str | None,
    until: str | None,
    target: Target,
    **given: Any,
) -> None:
    """Show all events that match; a value that ends with * is a prefix. The exit code is 1 if there are none.

    \b
    Examples:
      millbeck audit search --event denied --principal User:bob --since 2h
      millbeck audit search --event changed --kind config --name 'topic:orders:*' --file audit.log
    """
    from datetime import UTC, datetime

    from millbeck.cli.audit.selection import Selection, parse_events, parse_time
    from millbeck.cli.audit.sources import lines_of_files, lines_of_topic, with_rotated

    now = datetime.now(UTC)
    selection = Selection(
        kinds=kinds,
        fields=_fields(given),
        since=parse_time(since, now, "--since") if since else "",
        until=parse_time(until, now, "--until") if until else "",
    )
    count = 0
    if files:
        count = _show(filter(selection.takes, parse_events(lines_of_files(with_rotated(files)))), output)
    else:
        since_ms = _wall_ms(selection)

        async def work(environment: Environment) -> None:
            nonlocal count
            async for some in lines_of_topic(environment, target, since_ms=since_ms, follows=False):
                count += _show(filter(selection.takes, parse_events(some)), output)

        run(work)
    if not count:
        raise SystemExit(1)


def _wall_ms(selection: Selection) -> int | None:
    """The record timestamp from which to read the topic; records are written a little after their events."""
    from datetime import datetime

    return int(datetime.fromisoformat(selection.since).timestamp() * 1000) if selection.since else None


def _fields(given: dict[str, Any]) -> dict[str, str]:
    return {name: given[name] for name in FIELDS if given.get(name) is not None}


def _show(events: Iterable[Event], output: str) -> int:
    from millbeck.cli.audit.selection import shown

    count = 0
    for event in events:
        click.echo(shown(event) if output == TEXT else document(event, output))
        count += 1
    check_reader()
    return count
