"""Reading, altering and resetting a connector's offsets (KIP-875)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.connectors.declared import ConnectorKind, connector_of, found_connector
from millbeck.pipeline.connect.rest.answers import Decision, GroupOffset, RestError, bad_request, not_found
from millbeck.pipeline.connect.rest.herder import Cluster
from millbeck.pipeline.connect.state.configs import TargetState

_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"
_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1

Changes = list[tuple[dict[str, Any], dict[str, Any] | None]]


def group_of(name: str, settings: Mapping[str, str]) -> str:
    """The consumer group with a sink's positions."""
    return settings.get("consumer.override.group.id") or f"connect-{name}"


class OffsetRequests:
    """Answers requests about offsets. Raises `RestError`."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def kind(self, name: str) -> ConnectorKind:
        settings = self._cluster.configs.connectors.get(name)
        if settings is None:
            raise not_found(f"Connector {name} not found")
        known = found_connector(settings.get("connector.class", ""))
        if known is None:
            raise RestError(500, f"The class of connector {name} is not known here: {settings.get('connector.class')}")
        return known.kind

    def group(self, name: str) -> str:
        self.kind(name)
        return group_of(name, self._cluster.configs.connectors[name])

    def of_source(self, name: str) -> dict[str, Any]:
        self.kind(name)
        found = self._cluster.offsets.offsets_of(name)
        return {"offsets": [{"partition": each.partition, "offset": each.offset} for each in found]}

    def of_sink(self, committed: Iterable[GroupOffset]) -> dict[str, Any]:
        """The answer for the group's committed offsets."""
        return {
            "offsets": [
                {
                    "partition": {_PARTITION: each.partition, _TOPIC: each.topic},
                    "offset": {_OFFSET: each.offset},
                }
                for each in sorted(committed)
            ]
        }

    def alter(self, name: str, body: Any) -> Decision:
        """``PATCH /connectors/{name}/offsets``."""
        listed = body.get("offsets") if isinstance(body, dict) else None
        if not isinstance(listed, list) or not listed:
            raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
        self._check_stopped(name)
        changes = [_change(each) for each in listed]
        done = {"message": "The offsets for this connector have been altered successfully"}
        if self.kind(name) is ConnectorKind.SINK:
            positions = tuple(_group_offset(partition, offset) for partition, offset in changes)
            return Decision(body=done, group=self.group(name), group_offsets=positions, connector=name)
        self._check_source(name, changes)
        record = self._cluster.offsets.record
        return Decision(
            body=done,
            source_offsets=tuple(record(name, partition, offset) for partition, offset in changes),
            connector=name,
        )

    def reset(self, name: str) -> Decision:
        """``DELETE /connectors/{name}/offsets``."""
        self._check_stopped(name)
        done = {"message": "The offsets for this connector have been reset successfully"}
        if self.kind(name) is ConnectorKind.SINK:
            return Decision(body=done, group=self.group(name), group_offsets=(), connector=name)
        record = self._cluster.offsets.record
        known = self._cluster.offsets.offsets_of(name)
        return Decision(
            body=done,
            source_offsets=tuple(record(name, each.partition, None) for each in known),
            connector=name,
        )

    def _check_stopped(self, name: str) -> None:
        configs = self._cluster.configs
        if name not in configs.connectors:
            raise not_found(f"Connector {name} not found")
        if configs.target_states.get(name) is not TargetState.STOPPED or configs.tasks_of(name):
            raise bad_request(
                "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for the"
                f" specified connector by issuing a 'PUT' request to the '/connectors/{name}/stop' endpoint"
            )

    def _check_source(self, name: str, changes: Changes) -> None:
        known = connector_of(self._cluster.configs.connectors[name]["connector.class"])
        for partition, offset in changes:
            problem = known.offset_problem(partition, offset)
            if problem is not None:
                raise bad_request(problem)


def _change(found: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    if not isinstance(found, dict):
        raise bad_request("offsets: each entry is an object with partition and offset")
    partition, offset = found.get("partition"), found.get("offset")
    if partition is None:
        raise bad_request("The partition for a sink connector offset cannot be null or missing")
    if not isinstance(partition, dict) or not isinstance(offset, dict | None):
        raise bad_request("offsets: partition and offset are objects, an offset may be null")
    return partition, offset


def _group_offset(partition: dict[str, Any], offset: dict[str, Any] | None) -> GroupOffset:
    topic, number = partition.get(_TOPIC), partition.get(_PARTITION)
    if topic is None or number is None:
        raise bad_request(
            f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
        )
    index = _whole(number, _INT32_MAX)
    if index is None:
        raise bad_request(
            f"Failed to parse the following Kafka partition value in the provided offsets: '{number}'. Partition values"
            " for sink connectors need to be integers."
        )
    if offset is None:
        return GroupOffset(str(topic), index, None)
    if _OFFSET not in offset:
        raise bad_request(f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
    position = _whole(offset[_OFFSET], _INT64_MAX)
    if position is None:
        raise bad_request(
            f"Failed to parse the following Kafka offset value in the provided offsets: '{offset[_OFFSET]}'. Offset"
            " values for sink connectors need to be integers."
        )
    return GroupOffset(str(topic), index, position)


def _whole(found: Any, largest: int) -> int | None:
    """A number, or a text with one; None for anything else, and for a negative one."""
    text = str(found).strip()
    if isinstance(found, bool) or not text.isascii() or not text.isdecimal() or len(text) > 19:
        return None
    return int(text) if int(text) <= largest else None
