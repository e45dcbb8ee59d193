"""``millbeck registry repair``: find records whose schema the registry does not have, and restore a schema under its
id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from millbeck.cli.completed_types import FILE, TOPIC
from millbeck.cli.connection_options import Target, check_reachable, check_topic, client_settings_of, run, target_of
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.registries.connection import registry_command
from millbeck.cli.registries.directory import type_of
from millbeck.cli.registries.moving import SCHEMA, exported, imported
from millbeck.cli.verbs import Command
from millbeck.client.schemas.errors import BadRecord, UnknownSchema
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.wire_format import read_header, unframed
from millbeck.kernel.ids import TopicPartition
from millbeck.records.schema_validation import KEY_HEADER, VALUE_HEADER

NO_ID: Final = "no schema id"
NO_SCHEMA: Final = "no schema with this id"
NO_REFERENCE: Final = "refers to a version that does not exist"
_COLUMNS: Final = ("problem", "where", "id", "records", "first")


@dataclass(slots=True)
class Scan:
    """The schema ids and guids in records: for each topic, part and id the number of records, and the first one."""

    seen: dict[tuple[str, str, int | str | None], tuple[int, str]] = field(default_factory=dict)

    def look(
        self, place: TopicPartition, offset: int, parts: Mapping[str, bytes | None], headers: Iterable[Any]
    ) -> None:
        """Look at the parts (key and value) of one record that are not null."""
        marks = dict(headers)
        for part, data in parts.items():
            if data is None:
                continue
            mark = marks.get(KEY_HEADER if part == "key" else VALUE_HEADER)
            known: int | str | None
            try:
                known = unframed(data)[0] if mark is None else read_header(mark)[0]
            except BadRecord:
                known = None
            count, first = self.seen.get((place.topic, part, known), (0, f"{place.topic}-{place.partition}@{offset}"))
            self.seen[place.topic, part, known] = (count + 1, first)

    def problems(self, registry: RegistryClient) -> list[dict[str, Any]]:
        """What is wrong with the records. A part none of whose records has an id does not use the registry."""
        framed = {(topic, part) for topic, part, known in self.seen if known is not None}
        found = []
        for (topic, part, known), (count, first) in self.seen.items():
            if (topic, part) in framed and not (known is not None and _is_known(registry, known)):
                problem = NO_ID if known is None else NO_SCHEMA
                found.append(_problem(problem, f"{topic} {part}", known, records=count, first=first))
        return found


def _is_known(registry: RegistryClient, known: int | str) -> bool:
    try:
        registry.by_id(known) if isinstance(known, int) else registry.by_guid(known)
    except UnknownSchema:
        return False
    return True


def _problem(
    problem: str, where: str, known: int | str | None, *, records: int | None = None, first: str = ""
) -> dict[str, Any]:
    return {"problem": problem, "where": where, "id": known, "records": records, "first": first or None}


def orphans(registry: RegistryClient) -> list[dict[str, Any]]:
    """The versions that refer to versions which do not exist."""
    from millbeck.registry.subjects import context_of, qualify

    versions = [each for each in exported(registry) if each["kind"] == SCHEMA]
    there = {(each["subject"], each["version"]) for each in versions}
    found = []
    for each in versions:
        for reference in each.get("references", ()):
            target = (qualify(context_of(each["subject"]), reference["subject"]), reference["version"])
            if target not in there:
                where = f"{each['subject']} version {each['version']}: {target[0]} version {target[1]}"
                found.append(_problem(NO_REFERENCE, where, each["id"]))
    return found


@click.command(cls=Command)
@click.argument("topics", metavar="[TOPIC]…", type=TOPIC, nargs=-1)
@click.option("-b", "--bootstrap-server", "bootstrap", envvar="MILLBECK_BOOTSTRAP", help="The brokers of the topics.")
@click.option("--command-config", "config_path", type=FILE, help="A file with client settings for the brokers.")
@click.option("--max-records", type=click.IntRange(1), help="Read at most this many records of each partition.")
@click.option("--id", "schema_id", type=click.IntRange(1), help="Restore the schema of --file under this id.")
@click.option("--subject", help="With --id: the subject to restore it in.")
@click.option("--file", "path", type=FILE, help="With --id: the schema.")
@output_option
@registry_command
def repair(
    topics: tuple[str, ...],
    bootstrap: str | None,
    config_path: str | None,
    max_records: int | None,
    schema_id: int | None,
    subject: str | None,
    path: str | None,
    output: str,
    registry: RegistryClient,
) -> None:
    """Find what the registry lacks, or restore a schema under its id.

    Reads the given topics, and lists the ids in their records that no schema has, and the records without an id in
    topics that have ids. Also lists schemas that refer to versions which do not exist. The exit code is 1 if there are
    problems. A lost schema is restored with --id, --subject and --file.

    \b
    Examples:
      millbeck registry repair orders payments
      millbeck registry repair --id 7 --subject orders-value --file order.avsc
    """
    if schema_id is not None or subject is not None or path is not None:
        if schema_id is None or subject is None or path is None or topics:
            raise click.UsageError("--id, --subject and --file belong together, without topics")
        _restore(registry, schema_id, subject, Path(path))
        return
    scan = Scan()
    if topics:
        _read(target_of(bootstrap, client_settings_of(config_path, ())), topics, max_records, scan)
    found = [*scan.problems(registry), *orphans(registry)]
    if found:
        show_rows(found, output, columns=_COLUMNS)
        raise SystemExit(1)
    click.echo("no problems")


def _restore(registry: RegistryClient, schema_id: int, subject: str, path: Path) -> None:
    kind = type_of(path)
    if kind is None:
        raise click.UsageError(f"{path}: the file name of a schema must end in .avsc, .proto or .json")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path}: {error}") from error
    imported(registry, [{"kind": SCHEMA, "subject": subject, "id": schema_id, "schema": text, "schemaType": kind}])
    click.echo(f"restored: {subject}, id {schema_id}")


def _read(target: Target, topics: tuple[str, ...], max_records: int | None, scan: Scan) -> None:
    async def work(environment: Any) -> None:
        from millbeck.client.consumer import Consumer

        async with Consumer(target.client_settings(enable_auto_commit="false"), environment=environment) as consumer:
            await check_reachable(consumer.cluster, target)
            places = []
            for topic in topics:
                await check_topic(consumer.cluster, topic)
                partitions = (await consumer.topic(topic)).partitions
                places += [TopicPartition(topic, each) for each in partitions]
            ends = await consumer.end_offsets(places)
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            if max_records is not None:
                ends = {place: min(end, await consumer.position(place) + max_records) for place, end in ends.items()}
            left = [place for place in places if await consumer.position(place) < ends[place]]
            while left:
                for place, records in (await consumer.poll(timeout_s=0.5)).items():
                    for record in records:
                        if record.offset < ends[place]:
                            parts = {"key": record.key, "value": record.value}
                            scan.look(place, record.offset, parts, record.headers)
                left = [place for place in left if await consumer.position(place) < ends[place]]

    run(work)
