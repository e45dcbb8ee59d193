"""Undo aborted writes in the log.

An aborted transaction leaves its records in the log, and Confluent's instances read uncommitted records: they treat the
aborted write as committed. So a new leader writes for each key of an aborted write the current value: the last
committed value, or a tombstone. A NOOP with the header `reader.CLEAN_HEADER` then marks that everything before it has
been undone, so that the next leader examines only later records.
"""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.client.config import Value
from millbeck.client.consumer import Consumer
from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, UnreadableRecord, decode_key, encode_json
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.registry.state import RegistryState


async def aborted_keys(
    environment: Environment, settings: Mapping[str, Value], topic: str, *, start: int, end: int
) -> list[bytes]:
    """The keys whose last record in the range was not committed."""
    partition = TopicPartition(topic, 0)
    everything = await _last_offsets(environment, settings, partition, "read_uncommitted", start, end)
    committed = await _last_offsets(environment, settings, partition, "read_committed", start, end)
    return [key for key, offset in everything.items() if committed.get(key) != offset]


async def _last_offsets(
    environment: Environment,
    settings: Mapping[str, Value],
    partition: TopicPartition,
    isolation: str,
    start: int,
    end: int,
) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    async with Consumer(
        {**settings, "isolation.level": isolation, "auto.offset.reset": "earliest"}, environment=environment
    ) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, start)
        while await consumer.position(partition) < end:
            for record in (await consumer.poll(timeout_s=0.1)).get(partition, ()):
                if record.key is not None and record.offset < end:
                    found[record.key] = record.offset
    return found


def undo(state: RegistryState, keys: list[bytes]) -> list[LogRecord]:
    """Records that rewrite each key's current value, or a tombstone if it has none, so that read_uncommitted readers
    also drop the aborted write. Replaying them does not change ``state``."""
    records: list[LogRecord] = []
    for raw in keys:
        try:
            key = decode_key(raw)
        except UnreadableRecord:
            records.append(LogRecord(raw, None))
            continue
        if key.keytype is not KeyType.NOOP:
            records += _held(state, key, raw)
    return records


def _held(state: RegistryState, key: LogKey, raw: bytes) -> list[LogRecord]:
    subject = key.subject
    is_kept = raw in state.forms_of(key) and key not in state.leftovers
    value: bytes | None = None
    match key.keytype:
        case KeyType.SCHEMA:
            assert subject is not None
            version = state.subjects.get(subject, {}).get(key.version)
            if version is not None:
                value = version.value(is_deleted=version.is_deleted)
        case KeyType.CONFIG:
            value = encode_json(state.configs[subject]) if is_kept else None
        case KeyType.MODE:
            value = encode_json({"mode": state.modes[subject]}) if is_kept else None
        case KeyType.CONTEXT:
            value = encode_json({"tenant": "default", "context": subject}) if is_kept else None
        case _:
            # Deletes of whole subjects: the versions that they deleted are written again, one by one.
            assert subject is not None
            versions = state.subjects.get(subject, {}).values()
            written = [
                LogRecord(form, each.value(is_deleted=each.is_deleted))
                for each in versions
                for form in state.forms_of(each.key)
            ]
            return [LogRecord(raw, None), *written]
    return [LogRecord(raw, value)]
