"""A cluster for tests, whose only worker does at once what it is told to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from millbeck import __version__
from millbeck.pipeline.connect.connectors.connector_class import SettingProblem
from millbeck.pipeline.connect.rest.answers import Decision, GroupOffset, Request, RestError
from millbeck.pipeline.connect.rest.forwarding import Forwarded, ForwardedRequest
from millbeck.pipeline.connect.rest.herder import Cluster
from millbeck.pipeline.connect.rest.routes import Checked, GroupRead, Routes
from millbeck.pipeline.connect.state import configs, status
from millbeck.pipeline.connect.state.configs import StateRecord, TargetState, TaskId
from millbeck.pipeline.connect.state.status import State, Status, TopicUse

WORKER = "127.0.0.1:28083"


class World:
    """A cluster whose only worker does at once what it is told to."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.routes = Routes(self.cluster, cluster_id="cluster")
        self.groups: dict[str, dict[tuple[str, int], int]] = {}
        self._offset = 0

    def ask(self, method: str, target: str, body: Any = None) -> Decision:
        parts = urlsplit(target)
        query = {name: tuple(values) for name, values in parse_qs(parts.query).items()}
        outcome = self.routes.respond(Request(method=method, path=parts.path, query=query, body=body))
        if isinstance(outcome, Checked):
            return outcome.answered(())
        if isinstance(outcome, GroupRead):
            return outcome.answered(self._positions(outcome.group))
        self._perform(outcome)
        return outcome

    async def perform(self, decision: Decision) -> None:
        if any(topic == "unwritable" for topic, _, _ in decision.group_offsets or ()):
            raise RestError(500, "brokers refuse the offsets")
        self._perform(decision)

    def elsewhere(self, decision: Decision) -> str | None:
        return None

    async def forward(self, url: str, request: ForwardedRequest) -> Forwarded:
        raise AssertionError

    async def problems(self, settings: Mapping[str, str]) -> Iterable[SettingProblem]:
        if settings.get("file") == "/nowhere/f":
            return [SettingProblem("file", "there is no directory /nowhere: make it")]
        return []

    def metrics(self) -> str:
        return ""

    async def committed(self, group: str) -> Iterable[GroupOffset]:
        return self._positions(group)

    def _positions(self, group: str) -> list[GroupOffset]:
        return [GroupOffset(topic, index, offset) for (topic, index), offset in self.groups.get(group, {}).items()]

    def _perform(self, decision: Decision) -> None:
        for record in decision.configs:
            self._config(record)
        for record in decision.statuses:
            assert self.cluster.statuses.replay(*record)
        for key, value in decision.source_offsets:
            assert self.cluster.offsets.replay(key, value)
        if decision.group is not None and decision.group_offsets is not None:
            group = self.groups.setdefault(decision.group, {})
            if not decision.group_offsets:
                group.clear()
            for topic, index, offset in decision.group_offsets:
                assert offset is not None
                group[topic, index] = offset
        if decision.configs:
            self._work()

    def _config(self, record: StateRecord) -> None:
        event = self.cluster.configs.replay(self._offset, *record)
        assert event.change is not configs.Change.UNREADABLE
        self._offset += 1

    def _work(self) -> None:
        """What a worker does: tasks for connectors that have none, and a status of everything."""
        state = self.cluster.configs
        for name, settings in state.connectors.items():
            target = state.target_states[name]
            is_new = state.applied.get(name) != settings or not state.tasks_of(name)
            if target is TargetState.STARTED and is_new:
                task = f"org.apache.kafka.connect.file.{_class_of(settings)}Task"
                for record in configs.task_records(name, [{**settings, "task.class": task}]):
                    self._config(record)
            shown = {TargetState.STARTED: State.RUNNING}.get(target) or State(target.value)
            now = Status(state=shown, worker_id=WORKER, generation=1, version=__version__)
            self._status(status.connector_record(name, now))
            for task_id in [each for each in self.cluster.statuses.tasks if each.connector == name]:
                if task_id not in state.tasks_of(name):
                    self._status(status.task_record(task_id, None))
            for task_id in state.tasks_of(name):
                self._status(status.task_record(task_id, now))
            if target is TargetState.STARTED and settings.get("topic", settings.get("topics")) == "lines":
                self._status(status.topic_record(TopicUse("lines", name, 0, 5)))
        for name in [name for name in self.cluster.statuses.connectors if name not in state.connectors]:
            self._status(status.connector_record(name, None))
            for number in self.cluster.statuses.tasks_of(name):
                self._status(status.task_record(TaskId(name, number), None))

    def _status(self, record: StateRecord) -> None:
        assert self.cluster.statuses.replay(*record)

    def move_data(self) -> None:
        """What the source and the sink of the recording had done when its offsets were read."""
        for connector in ("source", "a/b"):
            if connector in self.cluster.configs.connectors:
                record = self.cluster.offsets.record(connector, {"filename": "in.txt"}, {"position": 14})
                assert self.cluster.offsets.replay(*record)
        self.groups["connect-sink"] = {("lines", 0): 15}


def _class_of(settings: dict[str, str]) -> str:
    return settings["connector.class"].rpartition(".")[2].removesuffix("Connector")
