"""``millbeck topic offsets``: the first, last or timed offset of each partition."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.completed_types import TOPIC
from millbeck.cli.connection_options import Target, run_admin, similar_topic, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import Command, kafka_tool
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
_SELECTION: Final = re.compile(r"([^:,]*)(?::(?:(\d+)|(\d*)-(\d*)))?")

Selection = Callable[[TopicPartition], bool]


@click.command(cls=Command)
@click.argument("selections", metavar="[TOPIC[:N]]...", type=TOPIC, nargs=-1)
@click.option("-t", "--topic", metavar="REGEX", type=TOPIC, help="Show only topics whose whole name matches.")
@click.option("-p", "--partitions", metavar="N,N", help="Show only these partitions of each topic.")
@click.option("--topic-partitions", metavar="A:0,B:0-3", help="The same as arguments, separated by commas.")
@click.option(
    "--time",
    default="latest",
    show_default=True,
    metavar="WHEN",
    help="latest, earliest, max-timestamp, earliest-local, latest-tiered, or milliseconds since 1970.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out internal topics.")
@output_option
@target_options
@click.pass_context
def command(
    ctx: click.Context,
    selections: tuple[str, ...],
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    time: str,
    exclude_internal_topics: bool,
    output: str,
    target: Target,
) -> None:
    """Show offsets of partitions: the end, the start, or the first one at or after a time.

    A selection is a topic or a regular expression, with a partition or a range of them that excludes its end: orders,
    orders:0, orders:0-3, orders:5-.

    \b
    Examples:
      millbeck topic offsets orders
      millbeck topic offsets orders:0 'events-.*' --time earliest
      millbeck topic offsets orders --time 1767225600000 --output json
    """
    timestamp = parse_time(time)
    texts = [*selections, *((topic_partitions or "").split(",") if topic_partitions is not None else ())]
    if topic_partitions is not None and (topic is not None or partitions is not None):
        raise click.UsageError("--topic-partitions cannot be combined with --topic and --partitions", ctx)
    chosen = [*map(parse_selection, texts), *([named(topic or "", partitions)] if topic or partitions else ())]

    async def work(admin: Admin) -> None:
        places = await _partitions(admin, chosen, include_internal=not exclude_internal_topics)
        if not places and (chosen or kafka_tool() is not None):
            names = [text.partition(":")[0] for text in (*texts, topic or "") if text.partition(":")[0]]
            hint = await similar_topic(admin.cluster, names[0]) if names else ""
            raise click.ClickException(f"no partition matches {', '.join(names)}{hint or ': see millbeck topic list'}")
        found = await admin.list_offsets(dict.fromkeys(places, timestamp))
        # A partition without a record that new has no offset to show.
        offsets = {place: each for place, each in sorted(found.succeeded.items()) if each.offset >= 0}
        if kafka_tool() is not None:
            for place, each in offsets.items():
                click.echo(f"{place.topic}:{place.partition}:{each.offset}")
        else:
            show_rows(
                (
                    {
                        "topic": place.topic,
                        "partition": place.partition,
                        "offset": each.offset,
                        "timestamp": None if each.timestamp < 0 else each.timestamp,
                    }
                    for place, each in offsets.items()
                ),
                output,
            )
        from millbeck.cli.commands.topic import raise_failures

        raise_failures(found.failed)

    run_admin(target, work)


def parse_time(text: str) -> int:
    """A timestamp as in ListOffsets; raises `click.UsageError`."""
    if text in TIMES:
        return TIMES[text]
    if re.fullmatch(r"-?\d{1,18}", text) and int(text) >= min(TIMES.values()):
        return int(text)
    raise click.UsageError(f"--time: {text!r} is neither one of {', '.join(TIMES)} nor milliseconds since 1970")


def parse_selection(text: str) -> Selection:
    """``orders``, ``orders:0``, ``orders:0-3``, ``orders:5-``, ``:0``; raises `click.UsageError`."""
    found = _SELECTION.fullmatch(text)
    if found is None:
        raise click.UsageError(f"expected a selection such as orders, orders:0, orders:0-3 or orders:5-, not {text!r}")
    name, number, low, high = found.groups()
    matches = _name_test(name)
    first, end = (int(number), int(number) + 1) if number else (int(low or 0), int(high) if high else None)
    return lambda place: matches(place.topic) and first <= place.partition and (end is None or place.partition < end)


def named(topic: str, partitions: str | None) -> Selection:
    """The partitions of ``--topic`` and ``--partitions``."""
    matches = _name_test(topic)
    try:
        numbers = None if partitions is None else {int(text) for text in partitions.split(",")}
    except ValueError:
        raise click.UsageError(f"--partitions: {partitions!r} is not a list of numbers such as 0,1") from None
    return lambda place: matches(place.topic) and (numbers is None or place.partition in numbers)


def _name_test(pattern: str) -> Callable[[str], bool]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise click.UsageError(f"{pattern!r} is neither a topic nor a regular expression: {error}") from error
    return lambda name: not pattern or name == pattern or expression.fullmatch(name) is not None


async def _partitions(admin: Admin, chosen: Iterable[Selection], *, include_internal: bool) -> list[TopicPartition]:
    selections = list(chosen)
    listed = await admin.list_topics()
    return [
        place
        for name, topic in sorted(listed.items())
        if include_internal or not topic.is_internal
        for place in (TopicPartition(name, number) for number in range(topic.partition_count))
        if not selections or any(wants(place) for wants in selections)
    ]
