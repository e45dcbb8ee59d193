from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from millbeck.cli.topics.deletion import parse_place
from millbeck.cli.topics.partition_files import read_offsets
from millbeck.kernel.ids import TopicPartition


def test_places_with_offsets() -> None:
    assert parse_place("orders:0:4711") == (TopicPartition("orders", 0), 4711)
    assert parse_place("orders:3:end") == parse_place("orders:3:-1") == (TopicPartition("orders", 3), -1)
    for text in ("orders", "orders:0", ":0:1", "orders:x:1", "orders:0:x", "orders:0:-2"):
        with pytest.raises(click.UsageError):
            parse_place(text)


def test_offsets_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "offsets.json"
    path.write_text('{"partitions": [{"topic": "a", "partition": 1, "offset": 12}], "version": 1}')
    assert read_offsets(str(path)) == {TopicPartition("a", 1): 12}
    for entries in ('[{"topic": "a", "partition": 1}]', '[{"topic": "a", "partition": 1, "offset": -2}]', "[]"):
        path.write_text(f'{{"partitions": {entries}}}')
        with pytest.raises(click.ClickException, match=r"offsets\.json: "):
            read_offsets(str(path))
    path.write_text(
        '{"partitions": [{"topic": "a", "partition": 1, "offset": 1}, {"topic": "a", "partition": 1, "offset": 2}]}'
    )
    with pytest.raises(click.ClickException, match="named twice"):
        read_offsets(str(path))


def test_nothing_named_is_nothing_deleted(fails: Callable[..., str]) -> None:
    assert fails("topic", "delete-records").startswith("name partitions with offsets, such as orders:0:4711")
