"""Turns of a source without a worker: plan, read, commit, with what the log would hold."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from millbeck.pipeline.connect.connectors.declared import connector_of, implementation_of
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    RejectedRecord,
    SourceConnector,
    SourceProgress,
    SourceReport,
)
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.model.record import SourceRecord
from millbeck.pipeline.connect.transforms.chain import stages_of, transformed


class Log:
    """Committed records and offsets."""

    def __init__(self) -> None:
        self.records: list[SourceRecord] = []
        self.rejected: list[RejectedRecord] = []
        self.offsets: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._key = JsonConverter({"schemas.enable": "false", "converter.type": "key"})
        self._value = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})

    def get(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self.offsets.get(json.dumps(partition, sort_keys=True))
        return None if found is None else dict(found[1])

    def items(self) -> Iterable[tuple[dict[str, Any], dict[str, Any]]]:
        return [(dict(partition), dict(offset)) for partition, offset in self.offsets.values()]

    def move(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        # Only what JSON can hold gets into the log.
        key = json.dumps(partition, sort_keys=True)
        if offset is None:
            self.offsets.pop(key, None)
        else:
            self.offsets[key] = (json.loads(key), json.loads(json.dumps(offset)))

    def of(self, topic: str) -> list[tuple[Any, Any]]:
        """Keys and values of a topic, as JSON."""
        return [self.shown(record) for record in self.records if record.topic == topic]

    def shown(self, record: SourceRecord) -> tuple[Any, Any]:
        key = self._key.to_bytes(record.topic, record.key_schema, record.key)
        value = self._value.to_bytes(record.topic, record.value_schema, record.value)
        return None if key is None else json.loads(key), None if value is None else json.loads(value)


class SourceRunner:
    """A connector that runs until `stop`, or until it is dropped as by a kill."""

    def __init__(self, settings: dict[str, str], log: Log, *, tasks_max: int = 1) -> None:
        self.log = log
        self._settings = settings
        self._tasks_max = tasks_max
        self._stages = stages_of(settings)
        self.woken = threading.Event()
        self.connector = self._made()
        self._task = self._made()
        self.connector.start()

    def _made(self) -> SourceConnector:
        known = connector_of(self._settings["connector.class"])
        context = ConnectorContext(
            name=self._settings["name"], settings=self._settings, tasks_max=self._tasks_max, wake=self.woken.set
        )
        made = implementation_of(known)(known.config_def.parse(self._settings), context)
        assert isinstance(made, SourceConnector)
        return made

    def turn(self, *, loses: Iterable[int] = ()) -> int:
        """Run a turn; the number of its shares. Shares at the places ``loses`` are read and not committed."""
        self.woken.clear()
        plan = self.connector.plan(self.log)
        reports: list[SourceReport] = []
        for task, share in enumerate(plan.shares):
            share = pickle.loads(pickle.dumps(share))
            records: list[SourceRecord] = []
            rejected: list[RejectedRecord] = []
            moves: list[tuple[Any, Any]] = []
            for item in self._task.read(share):
                if isinstance(item, SourceProgress):
                    moves.append((item.partition, item.offset))
                elif isinstance(item, RejectedRecord):
                    rejected.append(item)
                else:
                    made = transformed(self._stages, item)
                    if made is not None:
                        assert isinstance(made, SourceRecord)
                        self.log.shown(made)  # a converter must take it
                        records.append(made)
            if task in loses:
                continue
            self.log.records.extend(records)
            self.log.rejected.extend(rejected)
            for partition, offset in moves:
                self.log.move(partition, offset)
            reports.append(SourceReport(task=task, share=share, offsets=tuple(moves), record_count=len(records)))
        self.connector.commit(reports)
        return len(plan.shares)

    def run_until(self, condition: Any, *, turns_max: int = 400) -> None:
        for _ in range(turns_max):
            if condition():
                return
            if not self.turn():
                self.woken.wait(0.3)
        raise AssertionError(f"not there after {turns_max} turns; {len(self.log.records)} records")

    def stop(self) -> None:
        self.connector.stop()
