"""The state topics: what Kafka Connect wrote is read and written again byte for byte; and how records add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millbeck.pipeline.connect.state import configs, status
from millbeck.pipeline.connect.state.configs import (
    Change,
    ConfigState,
    RestartRequest,
    SessionKey,
    StateRecord,
    TargetState,
    TaskId,
)
from millbeck.pipeline.connect.state.offsets import OffsetState, SourceOffset
from millbeck.pipeline.connect.state.status import State, Status, StatusState, TopicUse

RECORDED = Path(__file__).parents[1] / "worker_topics.txt"


def recorded(topic: str) -> list[tuple[str, bytes | None]]:
    lines = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return [(key, None if value is None else value.encode()) for name, key, value in lines if name == topic]


def written_again(key: str, value: bytes | None) -> StateRecord:
    """Our record of what a record of connect-configs says."""
    if value is None:
        (found,) = [
            record for record in configs.deletion_records(key.split("-", key.count("-"))[-1]) if record.key == key
        ]
        return found
    parsed: dict[str, Any] = json.loads(value)
    for prefix in (configs.TARGET_STATE, configs.FENCING, configs.RESTART, configs.CONNECTOR, configs.COMMIT):
        name = key.removeprefix(prefix)
        if name == key:
            continue
        match prefix:
            case configs.TARGET_STATE:
                return configs.target_state_record(name, TargetState(parsed["state.v2"]))
            case configs.FENCING:
                return configs.fencing_record(name, parsed["task-count"])
            case configs.RESTART:
                return configs.restart_record(RestartRequest(name, parsed["only-failed"], parsed["include-tasks"]))
            case configs.CONNECTOR:
                return configs.connector_records(name, parsed["properties"])[0]
            case configs.COMMIT:
                return configs.task_records(name, [{}] * parsed["tasks"])[-1]
    if key == configs.SESSION_KEY:
        state = ConfigState()
        state.replay(0, key, value)
        assert state.session_key is not None
        return configs.session_key_record(state.session_key)
    name, _, number = key.removeprefix(configs.TASK).rpartition("-")
    return configs.task_records(name, [parsed["properties"]] * (int(number) + 1))[int(number)]


def test_configurations_are_written_as_kafka_does() -> None:
    found = recorded("connect-configs")
    assert {key.partition("-")[0] for key, _ in found} == {
        "session", "connector", "task", "commit", "tasks", "target", "restart"
    }  # fmt: skip
    for key, value in found:
        assert written_again(key, value) == (key, value)


def test_configurations_add_up_to_what_was_left() -> None:
    state = ConfigState()
    events = [state.replay(offset, key, value) for offset, (key, value) in enumerate(recorded("connect-configs"))]
    assert Change.UNREADABLE not in [event.change for event in events]
    assert list(state.connectors) == ["a/b"]
    assert state.tasks_of("a/b") == [TaskId("a/b", 0)]
    assert state.applied == state.connectors
    assert state.session_key is not None
    assert state.session_key.algorithm == "HmacSHA256"
    assert state.offset == len(events)
    assert Change.RESTART in [event.change for event in events]


def test_status_is_written_as_kafka_does() -> None:
    state = StatusState()
    for key, value in recorded("connect-status"):
        assert state.replay(key, value)
        if value is None:
            continue
        if key.startswith(status.CONNECTOR):
            name = key.removeprefix(status.CONNECTOR)
            assert status.connector_record(name, state.connectors[name]) == (key, value)
        elif key.startswith(status.TASK):
            name, _, number = key.removeprefix(status.TASK).rpartition("-")
            task = TaskId(name, int(number))
            assert status.task_record(task, state.tasks[task]) == (key, value)
        else:
            topic, _, name = key.removeprefix(status.TOPIC).partition(":connector-")
            assert status.topic_record(state.topics[name][topic]) == (key, value)
    assert state.connectors["a/b"].state is State.RUNNING
    assert state.tasks_of("a/b")[0].worker_id == "127.0.0.1:28083"
    assert list(state.topics["a/b"]) == ["lines"]


def test_offsets_are_written_as_kafka_does() -> None:
    state = OffsetState()
    for key, value in recorded("connect-offsets"):
        assert state.replay(key.encode(), value)
        connector, partition = json.loads(key)
        offset = state.offset_of(connector, partition)
        assert state.record(connector, partition, offset) == (key.encode(), value)
    assert list(state.offsets_of("a/b")) == [SourceOffset({"filename": "in.txt"}, {"position": 14})]
    assert list(state.offsets_of("nothing")) == []


def replayed(*records: StateRecord) -> ConfigState:
    state = ConfigState()
    for offset, record in enumerate(records):
        state.replay(offset, *record)
    return state


CONNECTOR = configs.connector_records("c", {"tasks.max": "2"})


def test_tasks_take_effect_together() -> None:
    *tasks, commit = configs.task_records("c", [{"a": "1"}, {"a": "2"}])
    state = replayed(*CONNECTOR, *tasks)
    assert (state.tasks, state.tasks_of("c")) == ({}, [])
    state.replay(9, *commit)
    assert state.tasks == {TaskId("c", 0): {"a": "1"}, TaskId("c", 1): {"a": "2"}}
    assert state.tasks_of("c") == [TaskId("c", 0), TaskId("c", 1)]
    assert (state.generations, state.pending_fencing) == ({"c": 0}, {"c"})
    state.replay(10, *configs.fencing_record("c", 2))
    assert (state.fencing_counts, state.pending_fencing) == ({"c": 2}, set())


def test_a_missing_task_makes_the_connector_inconsistent_until_all_are_written() -> None:
    both = configs.task_records("c", [{"a": "1"}, {"a": "2"}])
    state = replayed(*CONNECTOR, both[1], both[2])
    assert (state.inconsistent, state.tasks_of("c")) == ({"c"}, [])
    for record in both:
        state.replay(9, *record)
    assert (state.inconsistent, len(state.tasks_of("c"))) == (set(), 2)


def test_tasks_of_a_deleted_connector_are_forgotten() -> None:
    state = replayed(*CONNECTOR, *configs.task_records("c", [{}, {}]), *configs.deletion_records("c"))
    assert (state.connectors, state.tasks, state.task_counts, state.target_states) == ({}, {}, {}, {})
    orphans = replayed(*configs.task_records("c", [{}]))
    assert (orphans.tasks, orphans.task_counts) == ({}, {})


def test_a_target_state_of_an_older_worker_is_read() -> None:
    state = replayed(*configs.connector_records("c", {}, TargetState.STOPPED))
    assert state.target_states == {"c": TargetState.STOPPED}
    event = state.replay(5, "target-state-c", b'{"state":"PAUSED"}')
    assert (event.change, state.target_states["c"]) == (Change.TARGET_STATE, TargetState.PAUSED)
    assert state.replay(6, "target-state-c", b'{"state":"PAUSED"}').change is Change.NOTHING
    state.replay(7, "target-state-c", None)
    assert state.target_states == {"c": TargetState.STARTED}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("connector-c", b"{"),
        ("connector-c", b"[]"),
        ("connector-c", b'{"properties":5}'),
        ("task-c", b"{}"),
        ("task-c-x", b'{"properties":{}}'),
        ("commit-c", b'{"tasks":"2"}'),
        ("target-state-c", b'{"state":"ASLEEP"}'),
        ("session-key", b'{"key":"*","algorithm":"HmacSHA256","creation-timestamp":1}'),
        ("connector-c", b"[" * 100_000),
    ],
)
def test_what_cannot_be_read_changes_nothing(key: str, value: bytes) -> None:
    state = replayed(*CONNECTOR)
    event = state.replay(7, key, value)
    assert event.change is Change.UNREADABLE
    assert (state.connectors, state.tasks, state.offset) == ({"c": {"tasks.max": "2"}}, {}, 8)


def test_a_hostile_number_of_tasks_costs_nothing() -> None:
    state = replayed(*CONNECTOR, StateRecord("commit-c", b'{"tasks":9000000000000000000}'))
    assert (state.inconsistent, state.tasks_of("c")) == ({"c"}, [])


def test_a_session_key_is_not_shown() -> None:
    assert "secret" not in repr(SessionKey(b"secret", "HmacSHA256", 1))


def test_a_worker_that_has_lost_a_task_does_not_say_what_became_of_it() -> None:
    old = Status(state=State.RUNNING, worker_id="a", generation=3)
    assert not old.may_follow(Status(state=State.RUNNING, worker_id="b", generation=4))
    assert old.may_follow(Status(state=State.FAILED, worker_id="b", generation=3))
    assert old.may_follow(Status(state=State.FAILED, worker_id="a", generation=9))
    assert old.may_follow(None)


def test_status_of_what_is_gone_is_forgotten() -> None:
    state = StatusState()
    running = Status(state=State.RUNNING, worker_id="a", generation=3)
    use = TopicUse("t", "c", 0, 5)
    for record in (
        status.connector_record("c", running),
        status.task_record(TaskId("c", 1), running),
        status.topic_record(use),
    ):
        assert state.replay(*record)
    assert (state.connectors, state.tasks_of("c"), state.topics) == ({"c": running}, {1: running}, {"c": {"t": use}})
    for record in (
        status.connector_record("c", None),
        status.task_record(TaskId("c", 1), None),
        status.forgotten_topic_record("t", "c"),
    ):
        assert state.replay(*record)
    assert state == StatusState()
    for key, value in (
        ("status-task-c", b"{}"),
        ("status-connector-c", b"5"),
        ("status-topic-t", b"{}"),
        ("status-connector-c", b"{"),
    ):
        assert not state.replay(key, value)


def test_a_partition_keeps_the_key_that_it_was_first_written_with() -> None:
    state = OffsetState()
    key = b'["c",{"b":1,"a":"x"}]'
    assert state.replay(key, b'{"p":1}')
    assert state.record("c", {"a": "x", "b": 1}, {"p": 2}) == (key, b'{"p":2}')
    assert state.replay(key, None)
    assert state.offset_of("c", {"a": "x", "b": 1}) is None
    assert state.record("c", {"a": "x", "b": 1}, None) == (key, None)
    for bad in (b"", b"{", b'["c"]', b'["c",5]', b"[5,{}]"):
        assert not state.replay(bad, b"{}")
    assert not state.replay(key, b"5")
