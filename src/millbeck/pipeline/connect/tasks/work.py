"""What the worker sends to a task, and what the task reports: both are pickled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.interface import SinkShare, SourceShare

__all__ = ["FailureKind", "Outcome", "ShareFailure", "TaskSettings", "Work"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """A connector's configuration, as its tasks need it."""

    name: str
    class_name: str
    implementation: str
    settings: Mapping[str, str] = field(repr=False)
    """The connector's settings; variables of config providers are resolved."""
    converters: Mapping[str, str]
    """The worker's converters, with their settings."""
    tasks_max: int
    client: Mapping[str, str] = field(repr=False)
    """Settings of every client of the log."""
    producer: Mapping[str, str] = field(repr=False)
    consumer: Mapping[str, str] = field(repr=False)
    creates_topics: bool = True
    generation: int = 0
    """Counts the configurations that the worker has had for the connector."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One share for one task."""

    settings: TaskSettings
    task: int
    share: SourceShare | SinkShare
    ticket: TransactionHandle | None = None
    """The transaction of a source's records, or of a sink's dead letters; None: without a transaction."""
    attempt: int = 1


class FailureKind(Enum):
    """What follows from a failure."""

    RETRIABLE = "retriable"
    """A later attempt may succeed."""
    FATAL = "fatal"
    """Somebody has to mend something first."""
    LOST = "lost"
    """The process has ended, or the job was given up: nobody knows what was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareFailure:
    kind: FailureKind
    message: str
    trace: str = ""
    place: str = ""
    """The record that it failed at, as topic-partition@offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a share. Without a failure, everything it says is done but for the commit."""

    task: int
    failure: ShareFailure | None = None
    record_count: int = 0
    read_count: int = 0
    """Records that were read, those that were dropped or rejected, too."""
    filtered_count: int = 0
    skipped_count: int = 0
    letter_count: int = 0
    retry_count: int = 0
    byte_count: int = 0
    seconds: float = 0.0
    topics: tuple[str, ...] = ()
    """Topics that a source has written to, or a sink has read."""
    offsets: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = ()
    """Of a source: the last offset of each source partition."""
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Of a sink."""
    result: Any = None
    logged: tuple[str, ...] = ()
    """Lines for the worker's log: errors that were tolerated (``errors.log.enable``), at most some."""
