"""``millbeck connect``: workers, connectors, their configurations, converters and transforms."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.connection_options import Target, check_reachable, check_topic, run, target_options
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.client.consumer import Consumer
    from millbeck.kernel.environment import Environment
    from millbeck.pipeline.connect.rehearsal import Rehearsal, Step, StoredRecord

POLL_SECONDS: Final = 2.0
METADATA_SECONDS: Final = 10.0


_VERBS: Final = ("create", "delete", "dlq", "list", "offsets", "pause", "restart", "resume", "status", "stop")
"""The subcommands that ask a worker, imported when used."""
_WORKERS: Final = ("standalone", "worker")
"""The subcommands that run one."""


class _Verbs(click.Group):
    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_VERBS, *_WORKERS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _WORKERS:
            from millbeck.cli.connectors import workers

            started: click.Command = getattr(workers, cmd_name)
            return started
        if cmd_name not in _VERBS:
            return super().get_command(ctx, cmd_name)
        if cmd_name == "dlq":
            from millbeck.cli.connectors.dead_letters import dlq

            return dlq
        from millbeck.cli.connectors import verbs

        found: click.Command = getattr(verbs, "list_" if cmd_name == "list" else cmd_name)
        return found


@click.group(cls=_Verbs)
def command() -> None:
    """Run connectors, manage them, check their configurations, and try their converters and transforms.

    \b
    Examples:
      millbeck connect standalone worker.properties orders-sink.json
      millbeck connect worker worker.properties
      millbeck connect list
    """


def settings_of_file(path: Path) -> dict[str, str | None]:
    """The settings of a connector's file."""
    from millbeck.cli.connection_options import file_problem
    from millbeck.pipeline.connect.connector_files import settings_of_text
    from millbeck.pipeline.connect.errors import ConfigError

    try:
        return settings_of_text(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(file_problem(str(path), error)) from error
    except ConfigError as error:
        raise click.ClickException(f"{path}: {error}") from error


@command.command("validate")
@click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path))
@output_option
def validate(files: tuple[Path, ...], output: str) -> None:
    """Check configurations of connectors: JSON as for POST /connectors or PUT …/config, or .properties.

    The errors are those of Kafka Connect, each with its setting, and problems on which it would only fail later, such
    as a predicate that is not defined. The exit code is 1 if there is an error.

    \b
    Examples:
      millbeck connect validate orders-sink.json
      millbeck connect validate connectors/*.json -o json
    """
    from millbeck.pipeline.connect.config.validation import validated
    from millbeck.pipeline.connect.errors import ConfigError

    rows: list[dict[str, Any]] = []
    advice: list[str] = []
    for path in files:
        try:
            found = validated(settings_of_file(path))
        except ConfigError as error:
            rows.append({"file": str(path), "setting": "connector.class", "error": str(error)})
            continue
        rows += [
            {"file": str(path), "setting": entry.value.name, "error": error}
            for entry in found.entries
            for error in entry.value.errors
        ]
        advice += [f"{path}: {text}" for text in found.advice]
    if rows or output != TABLE:
        show_rows(rows, output, columns=("file", "setting", "error"))
    for text in advice:
        click.echo(text, err=True)
    if rows:
        raise click.exceptions.Exit(1)
    if output == TABLE:
        click.echo(f"{len(files)} configuration{'s' if len(files) > 1 else ''} checked, no errors")


@command.command("plugins")
@click.argument("name", metavar="[CLASS]", required=False)
@output_option
def plugins(name: str | None, output: str) -> None:
    """List connectors, converters, transforms and predicates, or the settings of one of them.

    \b
    Examples:
      millbeck connect plugins
      millbeck connect plugins 'Cast$Value'
      millbeck connect plugins FileStreamSink -o json
    """
    from millbeck.pipeline.connect.connectors.declared import CONNECTORS, found_connector, installed_connectors
    from millbeck.pipeline.connect.plugins import BUILT_IN, other_kind

    if name is None:
        rows = [
            {"class": each.name, "type": each.kind.value, "summary": each.doc}
            for each in (*CONNECTORS, *installed_connectors())
        ]
        rows += [{"class": each.name, "type": each.kinds[0].value, "summary": each.doc} for each in BUILT_IN]
        show_rows(rows, output, columns=("type", "class", "summary"))
        return
    found = found_connector(name) or other_kind(name)
    if found is None:
        from millbeck.cli.suggestions import did_you_mean

        names = [*(each.name for each in CONNECTORS), *(each.name for each in BUILT_IN)]
        known = [each.rpartition(".")[2].partition("$")[0] for each in names]
        raise click.ClickException(f"no such class: {name}{did_you_mean(name, known)}")
    settings = [key.description() for key in found.config_def]
    if output != TABLE:
        show(settings, output)
        return
    rows = [
        {
            "setting": each["name"],
            "type": each["type"].lower(),
            "default": "(required)" if each["required"] else each["default_value"] or "",
            "meaning": each["documentation"],
        }
        for each in settings
    ]
    click.echo(found.doc)
    show_rows(rows, output, columns=("setting", "type", "default", "meaning"))


@command.command("try")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--value", "values", multiple=True, metavar="TEXT", help="A record's value; can be repeated.")
@click.option("--key", metavar="TEXT", help="The key of these records.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=TEXT", help="A header of these records; can be repeated."
)
@click.option("--topic", metavar="TOPIC", help="The topic; by default the first of the connector's topics.")
@click.option(
    "-n", "--count", type=click.IntRange(min=1), default=3, show_default=True, help="How many records to read."
)
@target_options
@output_option
def try_(
    file: Path,
    values: tuple[str, ...],
    key: str | None,
    headers: tuple[str, ...],
    topic: str | None,
    count: int,
    target: Target,
    output: str,
) -> None:
    """Show records after each converter and transform of a connector.

    For a sink, the records are the first of its topic, or those of --value; for a source, each --value is a line that
    it has read. Nothing is written anywhere.

    \b
    Examples:
      millbeck connect try orders-sink.json -b 127.0.0.1:9092
      millbeck connect try orders-sink.json --value '{"id": 5, "note": null}' --header trace=abc
    """
    from millbeck.pipeline.connect.connectors.declared import ConnectorKind
    from millbeck.pipeline.connect.errors import ConfigError
    from millbeck.pipeline.connect.rehearsal import Rehearsal, StoredRecord

    settings = {name: text for name, text in settings_of_file(file).items() if text is not None}
    try:
        rehearsal = Rehearsal(settings)
    except ConfigError as error:
        raise click.ClickException(f"{file}: {error}") from error
    if rehearsal.kind is ConnectorKind.SOURCE:
        if not values:
            raise click.UsageError("a source has no records to read here: give its lines with --value")
        _show([(f"line {number}", list(rehearsal.of_text(text))) for number, text in enumerate(values, 1)], output)
        return
    named = topic or next((each.strip() for each in settings.get("topics", "").split(",") if each.strip()), None)
    if named is None:
        raise click.UsageError("the connector has no topics: name one with --topic")
    given = [
        StoredRecord(
            topic=named,
            offset=offset,
            key=None if key is None else key.encode(),
            value=text.encode(),
            headers=tuple(_header(each) for each in headers),
        )
        for offset, text in enumerate(values)
    ]
    if given:
        _show_records(rehearsal, given, output)
        return

    async def main(environment: Environment) -> None:
        from millbeck.client.consumer import Consumer

        async with Consumer(target.client_settings(enable_auto_commit="false"), environment=environment) as consumer:
            await check_reachable(consumer.cluster, target)
            await check_topic(consumer.cluster, named)
            records = await _first_records(consumer, named, count)
        if not records:
            click.echo(f"{named} has no records", err=True)
        _show_records(rehearsal, records, output)

    run(main)


def _header(given: str) -> tuple[str, bytes]:
    name, separator, text = given.partition("=")
    if not separator:
        raise click.BadParameter(f"{given}: NAME=TEXT is expected", param_hint="--header")
    return name, text.encode()


async def _first_records(consumer: Consumer, topic: str, count: int) -> list[StoredRecord]:
    """The first records of a topic, of all of its partitions; fewer when there are no more."""
    from millbeck.kernel.ids import TopicPartition
    from millbeck.pipeline.connect.rehearsal import StoredRecord

    described = await consumer.cluster.topic(topic, timeout_s=METADATA_SECONDS)
    places = [TopicPartition(topic, index) for index in sorted(described.partitions)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = await consumer.end_offsets(places)
    found: list[StoredRecord] = []
    while len(found) < count and [place for place in places if await consumer.position(place) < ends[place]]:
        for place, records in (await consumer.poll(timeout_s=POLL_SECONDS)).items():
            found += [
                StoredRecord(
                    topic=topic,
                    partition=place.partition,
                    offset=record.offset,
                    timestamp=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=tuple(record.headers),
                )
                for record in records
            ]
    return sorted(found, key=lambda record: (record.timestamp or 0, record.partition, record.offset))[:count]


def _show_records(rehearsal: Rehearsal, records: Iterable[StoredRecord], output: str) -> None:
    _show(
        [(f"{each.topic}-{each.partition}@{each.offset}", list(rehearsal.of_stored(each))) for each in records], output
    )


def _show(rehearsed: list[tuple[str, list[Step]]], output: str) -> None:
    """Print each record's stages. The exit code is 1 when one of them failed."""
    if output != TABLE:
        show([{"record": name, "stages": [_row(step) for step in steps]} for name, steps in rehearsed], output)
    else:
        for name, steps in rehearsed:
            click.echo(name)
            for step in steps:
                click.echo(f"  {step.stage}: {_line(step)}")
    if any(step.error for _, steps in rehearsed for step in steps):
        raise click.exceptions.Exit(1)


def _row(step: Step) -> dict[str, Any]:
    if step.error is not None:
        return {"stage": step.stage, "error": step.error}
    if step.is_skipped:
        return {"stage": step.stage, "skipped": True}
    return {"stage": step.stage, "record": step.shown}


def _line(step: Step) -> str:
    if step.error is not None:
        return f"error: {step.error}"
    if step.is_skipped:
        return "not for this record"
    if step.shown is None:
        return "dropped"
    return "  ".join(f"{name}={_value(each)}" for name, each in step.shown.items())


def _value(found: Any) -> str:
    if found is None:
        return "null"
    return ", ".join(found) if isinstance(found, list) else str(found)
