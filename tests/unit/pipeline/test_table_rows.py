"""The last value of each key against a dictionary, over histories with tombstones, old timestamps and restarts."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from millbeck.pipeline.table_rows import FoundRow, TableRecord, TableRows

KEYS = [bytes([letter]) for letter in b"abcdef"]


def last_values(log: list[TableRecord]) -> dict[bytes, bytes]:
    """By partition the record with the highest offset, and of several partitions that with the newest timestamp."""
    last: dict[tuple[bytes, int], TableRecord] = {}
    for record in log:
        last[record.key, record.partition] = record
    newest: dict[bytes, TableRecord] = {}
    for record in sorted(last.values(), key=lambda one: (one.timestamp, one.partition)):
        newest[record.key] = record
    return {key: record.value for key, record in newest.items() if record.value is not None}


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_thousand_histories_end_with_their_last_values(tmp_path: Path, partitions: int) -> None:
    random_numbers = random.Random(partitions)
    for history in range(500):
        path = str(tmp_path / f"{history % 20}-{history}")
        log: list[TableRecord] = []
        rows = TableRows(path)
        for offset in range(random_numbers.randint(1, 15)):
            key = random_numbers.choice(KEYS)
            # A key stays in its partition, but for the case of several partitions.
            partition = random_numbers.randrange(partitions)
            value = None if random_numbers.random() < 0.3 else bytes([offset])
            log.append(TableRecord(key, partition, value, random_numbers.randint(-9, 9), offset))
        with rows.transaction():
            # A copy reads one partition after the other, and removes tombstones at the end.
            for partition in range(partitions):
                rows.put(record for record in log if record.partition == partition)
            rows.purge()
        if random_numbers.random() < 0.1:
            rows.close()
            rows = TableRows(path)
        expected = last_values(log)
        assert {key: row.value for key, row in rows.find(KEYS).items()} == expected
        rows.close()


def test_changes_are_there_when_their_transaction_ends(tmp_path: Path) -> None:
    rows, others = TableRows(str(tmp_path / "rows")), TableRows(str(tmp_path / "rows"))
    with rows.transaction():
        rows.put([TableRecord(b"a", 0, b"1", 5, 7)])
        rows.put_state("positions", {"0": 8})
        assert others.find([b"a"]) == {}
    assert others.find([b"a", b"b"]) == {b"a": FoundRow(b"1", 0, 7)}
    assert others.state("positions") == {"0": 8}

    def fail() -> None:
        with rows.transaction():
            rows.clear()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert others.find([b"a"]) == {b"a": FoundRow(b"1", 0, 7)}
    rows.close()
    others.close()


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    TableRows(path).close()

    def add() -> None:
        rows = TableRows(path)
        for _ in range(20):
            with rows.transaction():
                rows.put_state("count", (rows.state("count") or 0) + 1)
        rows.close()

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = TableRows(path)
    assert rows.state("count") == 60
    rows.close()
