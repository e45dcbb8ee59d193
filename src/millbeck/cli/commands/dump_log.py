"""``millbeck dump-log``: print the content of segments, indexes and snapshots, read directly from the files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.output import TEXT, document, stream_output_option
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.cli.records.log_files import DumpEntry, DumpOptions
    from millbeck.cli.records.record_payloads import Decoder

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


@click.command(cls=Command)
@click.argument("paths", nargs=-1)
@click.option("--files", multiple=True, metavar="FILE,FILE", help="The same as PATHS.")
@click.option("--deep-iteration", is_flag=True, help="Print every record of a batch, not only the batch header.")
@click.option("--print-data-log", is_flag=True, help="Print records with their keys and values.")
@click.option("--offsets-decoder", is_flag=True, help="Decode records as those of __consumer_offsets.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Decode records as those of __cluster_metadata.")
@click.option("--index-sanity-check", is_flag=True, help="Only check that index files are well formed.")
@click.option("--verify-index-only", is_flag=True, help="Only check that index entries match their segments.")
@click.option("--max-message-size", type=int, metavar="BYTES", help="Stop at a batch larger than this.")
@click.option("--max-bytes", type=int, metavar="BYTES", help="Read at most this many bytes of a segment.")
@click.option(
    "--value-decoder-class", "--key-decoder-class", hidden=True, expose_value=False, is_flag=False, flag_value=""
)
@stream_output_option
@click.pass_context
def command(
    ctx: click.Context,
    paths: tuple[str, ...],
    files: tuple[str, ...],
    deep_iteration: bool,
    print_data_log: bool,
    offsets_decoder: bool,
    cluster_metadata_decoder: bool,
    index_sanity_check: bool,
    verify_index_only: bool,
    max_message_size: int | None,
    max_bytes: int | None,
    output: str,
) -> None:
    """Print the content of log files; a directory stands for all log files in it. No broker is needed.

    \b
    Examples:
      millbeck dump-log data/orders-0/00000000000000000000.log --print-data-log
      millbeck dump-log data/orders-0 --deep-iteration --output json
      millbeck dump-log --cluster-metadata-decoder --files data/__cluster_metadata-0/00000000000000000000.log
    """
    from millbeck.cli.records.log_files import DumpOptions

    if offsets_decoder and cluster_metadata_decoder:
        raise click.UsageError("choose one decoder", ctx)
    wanted = list(log_files_of([*paths, *(path for text in files for path in text.split(",") if path)]))
    if not wanted:
        raise click.UsageError("no files given: name them as arguments or with --files", ctx)
    depth = DumpOptions(
        records=deep_iteration or print_data_log or offsets_decoder or cluster_metadata_decoder,
        payloads=print_data_log or offsets_decoder or cluster_metadata_decoder,
        decoder=_decoder(offsets_decoder, cluster_metadata_decoder),
        batch_bytes_max=max_message_size,
        bytes_max=max_bytes,
    )
    is_check = index_sanity_check or verify_index_only
    problem_count = 0
    for path in wanted:
        try:
            problem_count += (
                _check_index(path, depth, verify=verify_index_only) if is_check else _dump(path, depth, output)
            )
        except BrokenPipeError:
            raise
        except (OSError, ValueError) as error:
            raise click.ClickException(str(error)) from error
    if problem_count:
        raise SystemExit(1)


def log_files_of(paths: list[str]) -> Iterator[str]:
    """The given files; a directory is replaced by the log files in it."""
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(SUFFIXES))
        elif os.path.exists(path):
            yield path
        else:
            raise click.ClickException(f"{path}: there is no such file")


def _decoder(offsets: bool, cluster_metadata: bool) -> Decoder:
    from millbeck.cli.records import record_payloads

    if offsets:
        return record_payloads.group_record
    return record_payloads.metadata_record if cluster_metadata else record_payloads.plain


def _dump(path: str, depth: DumpOptions, output: str) -> int:
    """Print a file; returns the number of problems found."""
    from millbeck.cli.progress import progress_of_loop
    from millbeck.cli.records.log_files import PROBLEM, base_offset_of, read_entries

    entries = read_entries(path, depth)
    if output == TEXT:
        click.echo(f"Dumping {path}")
        if path.endswith(".log"):
            click.echo(f"Log starting offset: {base_offset_of(path)}")
    problem_count, position = 0, 0
    size_bytes = os.path.getsize(path)

    def how_far() -> str:
        return f"{path}: {position / 1e6:.0f} of {size_bytes / 1e6:.0f} MB"

    with progress_of_loop() as show:
        for entry in entries:
            problem_count += entry.kind == PROBLEM
            if output == TEXT:
                click.echo(text_of(entry))
            else:
                click.echo(document({"file": path, "entry": entry.kind, **entry.fields}, output))
            if isinstance(place := entry.fields.get("position"), int):
                position = place
            show(how_far)
    return problem_count


def text_of(entry: DumpEntry) -> str:
    """A line in the format of Kafka's tool: ``name: value`` pairs, records prefixed by a bar."""
    from millbeck.cli.records.log_files import PROBLEM, RECORD

    if entry.kind == PROBLEM:
        return f"PROBLEM: {entry.fields['problem']}"
    line = " ".join(f"{name}: {_value(name, value)}" for name, value in entry.fields.items())
    return f"| {line}" if entry.kind == RECORD else line


def _value(name: str, value: object) -> str:
    if name == "deleteHorizonMs":
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


def _check_index(path: str, depth: DumpOptions, *, verify: bool) -> int:
    """Check an index file and print the result; returns the number of problems. Other files are skipped."""
    from millbeck.cli.records.log_files import PROBLEM, read_entries

    if not path.endswith("index"):
        return 0
    entries = list(read_entries(path, depth))
    problems = [str(entry.fields["problem"]) for entry in entries if entry.kind == PROBLEM]
    if verify and not problems and path.endswith(".index"):
        problems = list(_wrong_positions(path, entries))
    for problem in problems:
        click.echo(f"{path}: {problem}")
    if not problems:
        click.echo(f"{path} passed the check")
    return len(problems)


def _wrong_positions(path: str, entries: list[DumpEntry]) -> Iterator[str]:
    """Problems of an offset index: entries that do not point at the batch they name."""
    from millbeck.cli.records.log_files import batches_of
    from millbeck.kernel.errors import CorruptMessage

    last_offsets: dict[object, int] = {}
    try:
        for position, header, _ in batches_of(f"{os.path.splitext(path)[0]}.log"):
            last_offsets[position] = header.last_offset
    except CorruptMessage:
        pass  # Entries that point into the damaged part match no batch and are reported below.
    for entry in entries:
        named, offset = entry.fields["position"], entry.fields["offset"]
        if last_offsets.get(named) != offset:
            yield f"offset {offset} is not at position {named}"
