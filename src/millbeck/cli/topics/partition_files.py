"""Read and write the JSON files of Kafka's tools that name partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import click

from millbeck.kernel.ids import TopicPartition

ANY_DIRECTORY: Final = "any"


def read_partitions(path: str) -> list[TopicPartition]:
    """Read ``{"partitions": [{"topic": "a", "partition": 0}]}``; raises `click.ClickException`."""
    return [_partition(path, entry) for entry in _entries(path, _read(path), "partitions")]


def read_topics(path: str) -> list[str]:
    """Read ``{"topics": [{"topic": "a"}]}``."""
    names = []
    for entry in _entries(path, _read(path), "topics"):
        if not isinstance(entry, dict) or not isinstance(entry.get("topic"), str):
            raise click.ClickException(f'{path}: {entry!r} is not {{"topic": name}}')
        names.append(entry["topic"])
    return names


def read_assignment(path: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Read ``{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2]}]}``."""
    found: dict[TopicPartition, tuple[int, ...]] = {}
    for entry in _entries(path, _read(path), "partitions"):
        partition = _partition(path, entry)
        replicas = entry.get("replicas")
        if not isinstance(replicas, list) or not replicas or not all(type(each) is int for each in replicas):
            raise click.ClickException(f"{path}: {partition.topic}-{partition.partition} has no list of replicas")
        if len(set(replicas)) != len(replicas):
            raise click.ClickException(f"{path}: {partition.topic}-{partition.partition} names a replica twice")
        if partition in found:
            raise click.ClickException(f"{path}: {partition.topic}-{partition.partition} is named twice")
        found[partition] = tuple(replicas)
    return found


def read_directories(path: str) -> dict[tuple[int, TopicPartition], str]:
    """Read the wanted log directory by broker and partition: ``"log_dirs": ["/a", "any"]``; "any" is left out."""
    found: dict[tuple[int, TopicPartition], str] = {}
    for entry in _entries(path, _read(path), "partitions"):
        partition = _partition(path, entry)
        replicas, directories = entry.get("replicas"), entry.get("log_dirs")
        if directories is None:
            continue
        name = f"{partition.topic}-{partition.partition}"
        if not isinstance(directories, list) or not all(isinstance(each, str) for each in directories):
            raise click.ClickException(f"{path}: log_dirs of {name} is not a list of directories")
        if not isinstance(replicas, list) or len(replicas) != len(directories):
            raise click.ClickException(f"{path}: {name} needs as many log_dirs as replicas")
        for broker_id, directory in zip(replicas, directories, strict=True):
            if directory != ANY_DIRECTORY:
                if not directory.startswith("/"):
                    raise click.ClickException(f'{path}: {name}: {directory!r} is neither an absolute path nor "any"')
                found[broker_id, partition] = directory
    return found


def read_offsets(path: str) -> dict[TopicPartition, int]:
    """Read ``{"partitions": [{"topic": "a", "partition": 0, "offset": 12}]}``."""
    found: dict[TopicPartition, int] = {}
    for entry in _entries(path, _read(path), "partitions"):
        partition, offset = _partition(path, entry), entry.get("offset")
        if type(offset) is not int or offset < -1:
            raise click.ClickException(f"{path}: {partition} has no offset: a number, or -1 for the end")
        if partition in found:
            raise click.ClickException(f"{path}: {partition} is named twice")
        found[partition] = offset
    return found


def assignment_text(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Format an assignment for `read_assignment`."""
    entries = [
        {"topic": each.topic, "partition": each.partition, "replicas": list(replicas)}
        for each, replicas in sorted(assignment.items())
    ]
    return json.dumps({"version": 1, "partitions": entries})


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise click.ClickException(f"{path}: not valid JSON: {error}") from error


def _entries(path: str, content: Any, name: str) -> list[Any]:
    entries = content.get(name) if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise click.ClickException(f"{path}: it has no list of {name}")
    return entries


def _partition(path: str, entry: Any) -> TopicPartition:
    name = entry.get("topic") if isinstance(entry, dict) else None
    index = entry.get("partition") if isinstance(entry, dict) else None
    if not isinstance(name, str) or type(index) is not int or index < 0:
        raise click.ClickException(f"{path}: {entry!r} has no topic and partition")
    return TopicPartition(name, index)
