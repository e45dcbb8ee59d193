"""The topic of status (``connect-status``): how connectors and tasks do, and which topics connectors use."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from millbeck.pipeline.connect.state.configs import StateRecord, TaskId

CONNECTOR: Final = "status-connector-"
TASK: Final = "status-task-"
TOPIC: Final = "status-topic-"
_SEPARATOR: Final = ":connector-"
_GENERATION_MAX: Final = (1 << 31) - 1


class State(Enum):
    """How a connector or a task does."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    DESTROYED = "DESTROYED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Of a connector or a task, as the worker that has it says; the trace tells why it failed."""

    state: State
    worker_id: str
    generation: int
    trace: str | None = None
    version: str | None = None

    def stored(self) -> bytes:
        value = {
            "state": self.state.value,
            "trace": self.trace,
            "worker_id": self.worker_id,
            "generation": self.generation,
            "version": self.version,
        }
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def may_follow(self, before: Status | None) -> bool:
        """Whether it replaces another one that may be newer: the same worker's always, another's of a later generation.
        A worker that has lost a task must not say what became of it.
        """
        if before is None or before.worker_id == self.worker_id:
            return True
        return before.generation <= self.generation


@dataclass(frozen=True, slots=True)
class TopicUse:
    """A topic that a task of a connector has used, and since when."""

    topic: str
    connector: str
    task: int
    discovered_ms: int


def connector_record(name: str, status: Status | None) -> StateRecord:
    """None when the connector is deleted."""
    return StateRecord(f"{CONNECTOR}{name}", None if status is None else status.stored())


def task_record(task: TaskId, status: Status | None) -> StateRecord:
    return StateRecord(f"{TASK}{task}", None if status is None else status.stored())


def topic_record(use: TopicUse) -> StateRecord:
    value = {
        "topic": {
            "name": use.topic,
            "connector": use.connector,
            "task": use.task,
            "discoverTimestamp": use.discovered_ms,
        }
    }
    stored = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return StateRecord(f"{TOPIC}{use.topic}{_SEPARATOR}{use.connector}", stored)


def forgotten_topic_record(topic: str, connector: str) -> StateRecord:
    return StateRecord(f"{TOPIC}{topic}{_SEPARATOR}{connector}", None)


@dataclass(slots=True)
class StatusState:
    """The last status of each connector and task, and the topics in use."""

    connectors: dict[str, Status] = field(default_factory=dict)
    tasks: dict[TaskId, Status] = field(default_factory=dict)
    topics: dict[str, dict[str, TopicUse]] = field(default_factory=dict)
    """By connector and topic."""

    def replay(self, key: str | None, value: bytes | None) -> bool:
        """Apply a record of the topic; False for one that cannot be read, which is left out."""
        try:
            self._replay(key or "", None if value is None else json.loads(value))
        except (ValueError, KeyError, TypeError, RecursionError):
            return False
        return True

    def tasks_of(self, connector: str) -> dict[int, Status]:
        found = {task.task: status for task, status in self.tasks.items() if task.connector == connector}
        return dict(sorted(found.items()))

    def _replay(self, key: str, value: Any) -> None:
        if key.startswith(CONNECTOR):
            name = key.removeprefix(CONNECTOR)
            if value is None:
                self.connectors.pop(name, None)
            else:
                self.connectors[name] = _status(value)
        elif key.startswith(TASK):
            name, _, number = key.removeprefix(TASK).rpartition("-")
            task = TaskId(name, int(number))
            if value is None:
                self.tasks.pop(task, None)
            else:
                self.tasks[task] = _status(value)
        elif key.startswith(TOPIC):
            self._on_topic(key.removeprefix(TOPIC), value)

    def _on_topic(self, key: str, value: Any) -> None:
        topic, separator, connector = key.partition(_SEPARATOR)
        if not separator:
            raise ValueError("not a topic's key")
        uses = self.topics.setdefault(connector, {})
        if value is None:
            uses.pop(topic, None)
        else:
            found = value["topic"]
            uses[topic] = TopicUse(topic, connector, int(found["task"]), int(found["discoverTimestamp"]))
        if not uses:
            del self.topics[connector]


def _status(value: Any) -> Status:
    generation, trace, version = value["generation"], value.get("trace"), value.get("version")
    if not isinstance(generation, int) or not isinstance(value["worker_id"], str):
        raise ValueError("not a status")
    return Status(
        state=State(value["state"]),
        worker_id=value["worker_id"],
        generation=min(generation, _GENERATION_MAX),
        trace=trace if isinstance(trace, str) else None,
        version=version if isinstance(version, str) else None,
    )
