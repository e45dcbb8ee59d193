"""The topic of configurations (``connect-configs``): its records, and the state that they add up to.

Keys are texts, values JSON without schemas. What a leader decides takes effect when it is read back from the topic,
by itself as by all others. The configurations of a connector's tasks take effect together, with the ``commit-`` record
that says how many there are; a connector whose tasks are incomplete is inconsistent until all are written.

Records that cannot be read are left out, and `ConfigState.replay` says which: a topic that a Java cluster has written
is taken over as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

TARGET_STATE: Final = "target-state-"
CONNECTOR: Final = "connector-"
TASK: Final = "task-"
COMMIT: Final = "commit-"
FENCING: Final = "tasks-fencing-"
RESTART: Final = "restart-connector-"
LOGGER: Final = "logger-cluster-"
SESSION_KEY: Final = "session-key"
_TASKS_MAX: Final = 100_000


class TargetState(Enum):
    """The state of a connector that a user has requested."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class TaskId(NamedTuple):
    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The key that signs requests between workers; ``secret`` is not for logs."""

    secret: bytes = field(repr=False)
    algorithm: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class RestartRequest:
    connector: str
    only_failed: bool = False
    include_tasks: bool = False


class StateRecord(NamedTuple):
    """A record for a state topic; a value of None deletes the key."""

    key: str
    value: bytes | None


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def connector_records(
    name: str, settings: Mapping[str, str | None], state: TargetState | None = None
) -> list[StateRecord]:
    """A connector's configuration; with ``state`` it begins in that."""
    record = StateRecord(f"{CONNECTOR}{name}", _json({"properties": settings}))
    return [record] if state is None else [target_state_record(name, state), record]


def settings_of(value: bytes) -> dict[str, str]:
    """The settings in the value of a connector's or a task's record."""
    return _settings(json.loads(value))


def deletion_records(name: str) -> list[StateRecord]:
    return [StateRecord(f"{CONNECTOR}{name}", None), StateRecord(f"{TARGET_STATE}{name}", None)]


def target_state_record(name: str, state: TargetState) -> StateRecord:
    """Workers before Kafka 3.5 know no STOPPED, and read ``state``."""
    older = TargetState.PAUSED if state is TargetState.STOPPED else state
    return StateRecord(f"{TARGET_STATE}{name}", _json({"state": older.value, "state.v2": state.value}))


def task_records(name: str, settings: Sequence[Mapping[str, str]]) -> list[StateRecord]:
    """The configurations of all tasks, and the commit that puts them into effect."""
    tasks = [StateRecord(f"{TASK}{name}-{task}", _json({"properties": each})) for task, each in enumerate(settings)]
    return [*tasks, StateRecord(f"{COMMIT}{name}", _json({"tasks": len(settings)}))]


def fencing_record(name: str, tasks: int) -> StateRecord:
    """How many transactional ids there are to fence when the tasks of a source are made anew."""
    return StateRecord(f"{FENCING}{name}", _json({"task-count": tasks}))


def session_key_record(key: SessionKey) -> StateRecord:
    value = {
        "key": base64.b64encode(key.secret).decode(),
        "algorithm": key.algorithm,
        "creation-timestamp": key.created_ms,
    }
    return StateRecord(SESSION_KEY, _json(value))


def restart_record(request: RestartRequest) -> StateRecord:
    value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
    return StateRecord(f"{RESTART}{request.connector}", _json(value))


def logger_record(name: str, level: str) -> StateRecord:
    return StateRecord(f"{LOGGER}{name}", _json({"level": level}))


class Change(Enum):
    """What a replayed record has changed."""

    CONNECTOR_SET = "connector set"
    CONNECTOR_REMOVED = "connector removed"
    TASKS_SET = "tasks set"
    TARGET_STATE = "target state"
    SESSION_KEY = "session key"
    RESTART = "restart"
    LOGGER = "logger"
    NOTHING = "nothing"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class ConfigEvent:
    """The outcome of a record: for a restart with the request, for a logger with its level as ``detail``."""

    change: Change
    name: str = ""
    detail: Any = None


@dataclass(slots=True)
class ConfigState:
    """All configurations as of ``offset``, the offset behind the last record."""

    offset: int = -1
    connectors: dict[str, dict[str, str]] = field(default_factory=dict)
    target_states: dict[str, TargetState] = field(default_factory=dict)
    task_counts: dict[str, int] = field(default_factory=dict)
    tasks: dict[TaskId, dict[str, str]] = field(default_factory=dict)
    applied: dict[str, dict[str, str]] = field(default_factory=dict)
    """The configuration that the tasks in effect were made from."""
    inconsistent: set[str] = field(default_factory=set)
    fencing_counts: dict[str, int] = field(default_factory=dict)
    pending_fencing: set[str] = field(default_factory=set)
    """Sources whose earlier tasks are not known to be fenced."""
    generations: dict[str, int] = field(default_factory=dict)
    session_key: SessionKey | None = None
    _deferred: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)

    def tasks_of(self, connector: str) -> list[TaskId]:
        """The tasks in effect; none while they are incomplete."""
        if connector in self.inconsistent:
            return []
        return [TaskId(connector, task) for task in range(self.task_counts.get(connector, 0))]

    def replay(self, offset: int, key: str | None, value: bytes | None) -> ConfigEvent:
        """Apply a record of the topic."""
        self.offset = offset + 1
        try:
            found = None if value is None else json.loads(value)
            if found is not None and not isinstance(found, dict):
                raise ValueError("not a JSON object")
            return self._replay(key or "", found)
        except (ValueError, RecursionError):
            return ConfigEvent(Change.UNREADABLE, key or "")

    def _replay(self, key: str, value: dict[str, Any] | None) -> ConfigEvent:
        if key.startswith(TARGET_STATE):
            return self._on_target_state(key.removeprefix(TARGET_STATE), value)
        if key.startswith(CONNECTOR):
            return self._on_connector(key.removeprefix(CONNECTOR), value)
        if key.startswith(FENCING):
            return self._on_fencing(key.removeprefix(FENCING), value)
        if key.startswith(TASK):
            return self._on_task(key.removeprefix(TASK), value)
        if key.startswith(COMMIT):
            return self._on_commit(key.removeprefix(COMMIT), value)
        if value is None:
            return ConfigEvent(Change.NOTHING, key)
        if key.startswith(RESTART):
            request = RestartRequest(
                key.removeprefix(RESTART), value.get("only-failed") is True, value.get("include-tasks") is True
            )
            return ConfigEvent(Change.RESTART, request.connector, request)
        if key == SESSION_KEY:
            return self._on_session_key(value)
        if key.startswith(LOGGER):
            return ConfigEvent(Change.LOGGER, key.removeprefix(LOGGER), _text(value, "level"))
        return ConfigEvent(Change.NOTHING, key)

    def _on_target_state(self, name: str, value: dict[str, Any] | None) -> ConfigEvent:
        if value is None:
            self.target_states.pop(name, None)
            if name in self.connectors:
                self.target_states[name] = TargetState.STARTED
            return ConfigEvent(Change.NOTHING, name)
        newer = value.get("state.v2")
        state = TargetState(newer if isinstance(newer, str) else _text(value, "state"))
        is_new = self.target_states.get(name) is not state
        self.target_states[name] = state
        return ConfigEvent(Change.TARGET_STATE if is_new and name in self.connectors else Change.NOTHING, name)

    def _on_connector(self, name: str, value: dict[str, Any] | None) -> ConfigEvent:
        if value is None:
            self._remove(name)
            return ConfigEvent(Change.CONNECTOR_REMOVED, name)
        self.connectors[name] = _settings(value)
        self.target_states.setdefault(name, TargetState.STARTED)
        return ConfigEvent(Change.CONNECTOR_SET, name)

    def _remove(self, name: str) -> None:
        self.connectors.pop(name, None)
        self.task_counts.pop(name, None)
        self.applied.pop(name, None)
        self._deferred.pop(name, None)
        self.inconsistent.discard(name)
        for task in [task for task in self.tasks if task.connector == name]:
            del self.tasks[task]

    def _on_task(self, task_id: str, value: dict[str, Any] | None) -> ConfigEvent:
        name, separator, number = task_id.rpartition("-")
        if not separator or not number.isdecimal():
            raise ValueError("not a task's key")
        if value is not None and int(number) < _TASKS_MAX:
            self._deferred.setdefault(name, {})[int(number)] = _settings(value)
        return ConfigEvent(Change.NOTHING, name)

    def _on_commit(self, name: str, value: dict[str, Any] | None) -> ConfigEvent:
        applied = self.connectors.get(name)
        if applied is None:
            # The connector was deleted, and compaction has removed its configuration before those of its tasks.
            self._remove(name)
            return ConfigEvent(Change.NOTHING, name)
        if value is None:
            return ConfigEvent(Change.NOTHING, name)
        count = _whole(value, "tasks")
        deferred = self._deferred.pop(name, {})
        if not all(task in deferred for task in range(count)):
            self.inconsistent.add(name)
        else:
            self.tasks |= {TaskId(name, task): each for task, each in deferred.items()}
            if deferred:
                self.generations[name] = self.generations.get(name, -1) + 1
            self.inconsistent.discard(name)
            self.applied[name] = dict(applied)
        self.task_counts[name] = count
        self.pending_fencing.add(name)
        return ConfigEvent(Change.TASKS_SET, name)

    def _on_fencing(self, name: str, value: dict[str, Any] | None) -> ConfigEvent:
        if value is not None:
            self.fencing_counts[name] = _whole(value, "task-count")
            self.pending_fencing.discard(name)
        return ConfigEvent(Change.NOTHING, name)

    def _on_session_key(self, value: dict[str, Any]) -> ConfigEvent:
        try:
            secret = base64.b64decode(_text(value, "key"), validate=True)
        except binascii.Error:
            raise ValueError("not base64") from None
        self.session_key = SessionKey(secret, _text(value, "algorithm"), _whole(value, "creation-timestamp"))
        return ConfigEvent(Change.SESSION_KEY)


def _settings(value: dict[str, Any]) -> dict[str, str]:
    found = value.get("properties")
    if not isinstance(found, dict):
        raise ValueError("no properties")
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise ValueError(f"{name} is not a text")
    return found


def _whole(value: dict[str, Any], name: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 1 << 63:
        raise ValueError(f"{name} is not a whole number")
    return found
