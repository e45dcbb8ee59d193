"""``millbeck dump-log``: what lies in segments, indexes and snapshots, read from the files themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.cli.log_files import Depth, Entry
    from millbeck.cli.record_payloads import Decoder

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")


@click.command()
@click.argument("paths", nargs=-1)
@click.option("--files", multiple=True, metavar="FILE,FILE", help="The same as PATHS.")
@click.option("--deep-iteration", is_flag=True, help="Show every record of a batch, not only the batch.")
@click.option("--print-data-log", is_flag=True, help="Show records with their keys and values.")
@click.option("--offsets-decoder", is_flag=True, help="Read records as those of __consumer_offsets.")
@click.option("--cluster-metadata-decoder", is_flag=True, help="Read records as those of __cluster_metadata.")
@click.option("--index-sanity-check", is_flag=True, help="Only say whether index files are whole.")
@click.option("--verify-index-only", is_flag=True, help="Only say whether index files point into their segments.")
@click.option("--max-message-size", type=int, metavar="BYTES", help="Stop at a batch larger than this.")
@click.option("--max-bytes", type=int, metavar="BYTES", help="Stop after this much of a segment.")
@click.option("--value-decoder-class", "--key-decoder-class", hidden=True, expose_value=False)
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="JSON: an object to a line.")
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
    """Print what log files hold; a directory stands for all files of a log in it. No broker is needed.

    \b
    Examples:
      millbeck dump-log data/orders-0/00000000000000000000.log --print-data-log
      millbeck dump-log data/orders-0 --deep-iteration --output json
      millbeck dump-log --cluster-metadata-decoder --files data/__cluster_metadata-0/00000000000000000000.log
    """
    from millbeck.cli.log_files import Depth

    if offsets_decoder and cluster_metadata_decoder:
        raise click.UsageError("choose one decoder", ctx)
    wanted = list(log_files_of([*paths, *(path for text in files for path in text.split(",") if path)]))
    if not wanted:
        raise click.UsageError("which files?", ctx)
    depth = Depth(
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
    """The files themselves; for a directory those of a log in it."""
    for path in paths:
        if os.path.isdir(path):
            yield from (os.path.join(path, name) for name in sorted(os.listdir(path)) if name.endswith(SUFFIXES))
        elif os.path.exists(path):
            yield path
        else:
            raise click.ClickException(f"{path}: there is no such file")


def _decoder(offsets: bool, cluster_metadata: bool) -> Decoder:
    from millbeck.cli import record_payloads

    if offsets:
        return record_payloads.group_record
    return record_payloads.metadata_record if cluster_metadata else record_payloads.plain


def _dump(path: str, depth: Depth, output: str) -> int:
    """Print a file; how many problems it has."""
    from millbeck.cli.log_files import PROBLEM, base_offset_of, read_entries

    entries = read_entries(path, depth)
    if output == "text":
        click.echo(f"Dumping {path}")
        if path.endswith(".log"):
            click.echo(f"Log starting offset: {base_offset_of(path)}")
    problem_count = 0
    for entry in entries:
        problem_count += entry.kind == PROBLEM
        if output == "json":
            click.echo(json.dumps({"file": path, "entry": entry.kind, **entry.fields}, ensure_ascii=False))
        else:
            click.echo(text_of(entry))
    return problem_count


def text_of(entry: Entry) -> str:
    """A line in the form of Kafka's tool: ``name: value`` pairs, records marked by a bar."""
    from millbeck.cli.log_files import PROBLEM, RECORD

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


def _check_index(path: str, depth: Depth, *, verify: bool) -> int:
    """Say whether an index is good; how many problems it has. Other files are passed over."""
    from millbeck.cli.log_files import PROBLEM, read_entries

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


def _wrong_positions(path: str, entries: list[Entry]) -> Iterator[str]:
    """Entries of an offset index that do not lead to the batch they name."""
    from millbeck.cli.log_files import batches_of
    from millbeck.kernel.errors import CorruptMessage

    last_offsets: dict[object, int] = {}
    try:
        for position, header, _ in batches_of(f"{os.path.splitext(path)[0]}.log"):
            last_offsets[position] = header.last_offset
    except CorruptMessage:
        pass  # What an index says of the damaged part cannot be right, and is reported as such.
    for entry in entries:
        named, offset = entry.fields["position"], entry.fields["offset"]
        if last_offsets.get(named) != offset:
            yield f"offset {offset} is not at position {named}"
