from __future__ import annotations

from pathlib import Path

import click
import pytest

from millbeck.cli.topics.partition_files import (
    assignment_text,
    read_assignment,
    read_directories,
    read_partitions,
    read_topics,
)
from millbeck.kernel.ids import TopicPartition

A0, B1 = TopicPartition("a", 0), TopicPartition("b", 1)


def file_of(tmp_path: Path, text: str) -> str:
    path = tmp_path / "file.json"
    path.write_text(text)
    return str(path)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    text = assignment_text({B1: [3], A0: [1, 2]})
    assert text.startswith('{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}')
    assert read_assignment(file_of(tmp_path, text)) == {A0: (1, 2), B1: (3,)}
    assert read_partitions(file_of(tmp_path, text)) == [A0, B1]
    assert read_topics(file_of(tmp_path, '{"topics": [{"topic": "x"}], "version": 1}')) == ["x"]


BAD = {
    "not JSON": "{",
    "no object": "[]",
    "nothing in it": '{"partitions": []}',
    "no topic": '{"partitions": [{"partition": 0, "replicas": [1]}]}',
    "a partition below zero": '{"partitions": [{"topic": "a", "partition": -1, "replicas": [1]}]}',
    "a word for a number": '{"partitions": [{"topic": "a", "partition": "0", "replicas": [1]}]}',
    "true for a number": '{"partitions": [{"topic": "a", "partition": true, "replicas": [1]}]}',
    "no replicas": '{"partitions": [{"topic": "a", "partition": 0}]}',
    "a replica twice": '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}',
    "a partition twice": '{"partitions": [{"topic":"a","partition":0,"replicas":[1]},'
    '{"topic":"a","partition":0,"replicas":[2]}]}',
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_is_said_with_the_files_name(tmp_path: Path, text: str) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(click.ClickException, match=r"file\.json: "):
        read_assignment(path)


def test_topics_need_names(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="is not"):
        read_topics(file_of(tmp_path, '{"topics": [{"name": "x"}]}'))
    with pytest.raises(click.ClickException, match=r"missing: No such file or directory$"):
        read_topics(str(tmp_path / "missing"))


def entry(log_dirs: str) -> str:
    return f'{{"partitions": [{{"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": {log_dirs}}}]}}'


def test_directories_are_those_of_the_replicas_in_their_order(tmp_path: Path) -> None:
    assert read_directories(file_of(tmp_path, entry('["any", "/b"]'))) == {(2, A0): "/b"}
    assert read_directories(file_of(tmp_path, assignment_text({A0: [1]}))) == {}


@pytest.mark.parametrize(
    ("log_dirs", "said"),
    [
        ('"/a"', "not a list of directories"),
        ("[1, 2]", "not a list of directories"),
        ('["/a"]', "a-0 needs as many log_dirs as replicas"),
        ('["any", "b"]', "'b' is neither an absolute path"),
    ],
)
def test_directories_that_can_not_be_meant(tmp_path: Path, log_dirs: str, said: str) -> None:
    with pytest.raises(click.ClickException, match=said):
        read_directories(file_of(tmp_path, entry(log_dirs)))
