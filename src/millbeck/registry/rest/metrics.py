"""The metrics of a registry: Confluent's names where it has one, and requests by call and status."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.kernel.metrics import Registry

if TYPE_CHECKING:
    from millbeck.registry.instance import Instance
    from millbeck.registry.rest.app import RegistryApp


class Metrics:
    def __init__(self, app: RegistryApp) -> None:
        self._app = app
        self._registry = registry = Registry()
        self._requests = registry.counter(
            "kafka_schema_registry_requests_total", "Requests by call and HTTP status.", ("call", "status")
        )
        gauges: tuple[tuple[str, str, Callable[[Instance], int]], ...] = (
            (
                "kafka_schema_registry_master_slave_role",
                "Whether this instance is the leader: 1 or 0.",
                lambda each: int(each.is_leading),
            ),
            (
                "kafka_schema_registry_registered_count",
                "Number of versions that are not deleted.",
                lambda each: sum(len(each.state.versions(subject)) for subject in each.state.subjects),
            ),
            ("kafka_schema_registry_subject_count", "Subjects.", lambda each: len(each.state.subjects)),
            ("kafka_schema_registry_offset", "The offset of the last record read.", lambda each: each.offset),
            (
                "kafka_schema_registry_replay_lag",
                "Number of offsets of the topic that are not read yet.",
                lambda each: each.replay_lag,
            ),
            (
                "kafka_schema_registry_unreadable_records",
                "Records of the topic that could not be decoded.",
                lambda each: each.state.unreadable_count,
            ),
        )
        for name, text, value in gauges:
            registry.callback_gauge(name, text, (), self._reading(value))

    def _reading(self, value: Callable[[Instance], int]) -> Callable[[], list[tuple[tuple[str, ...], int]]]:
        def read() -> list[tuple[tuple[str, ...], int]]:
            service = self._app.service
            return [((), 0 if service is None else value(service.instance))]

        return read

    def count(self, call: str, status: int) -> None:
        self._requests.child(call, str(status)).value += 1

    def render(self) -> str:
        return self._registry.render()
