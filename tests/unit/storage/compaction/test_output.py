"""A new segment's files."""

from __future__ import annotations

from typing import Any

from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.storage import txn_index
from millbeck.storage.compaction.output import Output
from millbeck.storage.offset_index import OffsetIndex
from millbeck.storage.time_index import TimeIndex
from millbeck.storage.txn_index import AbortedTransaction

NAME = "00000000000000000000"


def make(world: Any, aborted: list[AbortedTransaction]) -> tuple[Any, list[bytes]]:
    written: list[int] = []
    assert world.log.end_offset == 0
    output = Output(world.files, world.path, 0, index_size_max=1000, index_interval_bytes=150, throttle=written.append)
    parts = [
        batches.build([Record(-1, 1000 + offset, b"k", b"v" * 50)], base_offset=offset) for offset in range(0, 20, 2)
    ]
    for offset, part in zip(range(0, 20, 2), parts, strict=True):
        output.note(offset, 1000 + offset, len(part))
        output.add(part)
    output.aborted += aborted
    made = output.finish(3)
    assert sum(written) == made.size
    return made, parts


def test_batches_and_indexes_are_written(world: Any) -> None:
    made, parts = make(world, [])
    assert world.read_file(NAME + ".log.cleaned") == b"".join(parts)
    assert (made.size, made.source_count, made.max_timestamp, made.max_timestamp_offset) == (
        sum(map(len, parts)),
        3,
        1018,
        18,
    )
    entries = OffsetIndex(0, 1000, world.read_file(NAME + ".index.cleaned")).entries()
    starts = [sum(map(len, parts[:count])) for count in range(len(parts))]
    assert len(entries) > 2
    assert all(position == starts[offset // 2] for offset, position in entries)
    times = TimeIndex(0, 1000, world.read_file(NAME + ".timeindex.cleaned")).entries()
    assert times[-1] == (1018, 18)
    assert not world.files.exists(f"{world.path}/{NAME}.txnindex.cleaned")


def test_aborted_transactions_get_their_index(world: Any) -> None:
    aborted = [AbortedTransaction(1, 2, 8, 9)]
    made, _ = make(world, aborted)
    assert made.has_aborted
    assert txn_index.decode(world.read_file(NAME + ".txnindex.cleaned"), 0) == aborted


def test_leftovers_of_an_interrupted_compaction_are_overwritten(world: Any) -> None:
    assert world.log.end_offset == 0
    world.write_file(NAME + ".log.cleaned", b"x" * 10_000)
    _, parts = make(world, [])
    assert world.read_file(NAME + ".log.cleaned") == b"".join(parts)


def test_everything_is_synced_but_the_names(world: Any) -> None:
    _, parts = make(world, [])
    world.files.sync_directory(world.path)
    world.files.sync_directory("/data")
    world.disk.power_loss(0.0)
    world.directory = world.open_directory()
    assert world.read_file(NAME + ".log.cleaned") == b"".join(parts)
    assert world.read_file(NAME + ".timeindex.cleaned")
