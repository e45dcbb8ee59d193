"""Dead letter queues of share groups: archived records are written to the group's DLQ topic (KIP-1191).

A dead letter has six headers with the record's position and the reason, and the record's key and value if the group is
configured to copy them. It is produced to the partition with the source partition's number, modulo the number of
partitions of the DLQ topic. Delivery is at least once: after a leader change the new leader writes it again. A record
whose dead letter cannot be written, because the topic is not allowed or all retries failed, is archived without one, as
in Kafka: an undeliverable record must not block the others forever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from millbeck.controller.auto_creation import InternalTopic
from millbeck.coordinator.share.partition.changes import DeadRecords
from millbeck.kernel.errors import (
    ApiError,
    InvalidConfig,
)
from millbeck.records import batch
from millbeck.records.builder import BatchBuilder
from millbeck.records.native.record import Header
from millbeck.replication.partition import Partition
from millbeck.server.config.sections.share_groups import DeadLetterOptions
from millbeck.server.topic_writer import TopicWriter
from millbeck.storage.config import LogConfig
from millbeck.storage.reading import LogSlice

if TYPE_CHECKING:
    from millbeck.metadata.image import TopicImage
    from millbeck.server.share.context import ShareContext
    from millbeck.server.share.statistics import GroupCounters

log = logging.getLogger(__name__)

REJECTED: Final = "Offset rejected by client."
DELIVERED_TOO_OFTEN: Final = "Offset delivery count exceeded the threshold."
PURPOSE: Final = "dead-letters"
TRIES_MAX: Final = 5
FIRST_PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 30.0
READ_BYTES: Final = 64 * 1024
ROUND_OFFSETS_MAX: Final = 500
RESERVED: Final = "__"

Originals = Mapping[int, tuple[bytes | None, bytes | None]]


class DeadLetter(NamedTuple):
    """A run of archived records, with the group's DLQ topic and whether to copy the records."""

    group_id: str
    source: Partition
    dead: DeadRecords
    topic: str
    is_copied: bool


def check_topic(
    letter: DeadLetter, image_topic: TopicImage | None, is_enabled: bool, options: DeadLetterOptions
) -> None:
    """Check that a group may use this DLQ topic; raises `InvalidConfig` with Kafka's messages."""
    group, name = letter.group_id, letter.topic
    if not name:
        raise InvalidConfig(f"Configured DLQ topic name in share group: {group} is empty.")
    if name.startswith(RESERVED):
        raise InvalidConfig(f"Configured DLQ topic name in share group: {group} cannot start with __, topic: {name}.")
    if image_topic is not None and not is_enabled:
        raise InvalidConfig(f"DLQ is not enabled on configured DLQ topic for share group: {group}, topic: {name}.")
    if image_topic is None and not options.auto_create_topics:
        raise InvalidConfig(
            f"DLQ topic does not exist and auto create is disabled on cluster for share group: {group}, topic: {name}."
        )
    if not name.startswith(options.topic_name_prefix):
        raise InvalidConfig(
            f"Configured DLQ topic name does not comply with the DLQ topic prefix in share group: {group}, "
            f"topic: {name}, prefix: {options.topic_name_prefix}."
        )


def headers_of(letter: DeadLetter, offset: int) -> tuple[Header, ...]:
    dead = letter.dead
    named = {
        "topic": letter.source.name.topic,
        "partition": letter.source.name.partition,
        "offset": offset,
        "group": letter.group_id,
        "delivery.count": dead.delivery_count,
        "message": REJECTED if dead.is_rejected else DELIVERED_TOO_OFTEN,
    }
    return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in named.items())


def batches_of(
    letter: DeadLetter, offsets: Iterable[int], originals: Originals, *, size_bytes_max: int, now_ms: int
) -> list[tuple[int, bytes]]:
    """Build the batches of dead letters, each with its record count.

    A record that would exceed ``size_bytes_max`` is not copied.
    """
    made: list[tuple[int, bytes]] = []
    builder = BatchBuilder()
    for offset in offsets:
        key, value = originals.get(offset, (None, None))
        headers = headers_of(letter, offset)
        if BatchBuilder().size_with(now_ms, key, value, headers) > size_bytes_max:
            key = value = None
        if builder.record_count and builder.size_with(now_ms, key, value, headers) > size_bytes_max:
            made.append((builder.record_count, builder.build()))
            builder = BatchBuilder()
        builder.append(now_ms, key, value, headers)
    if builder.record_count:
        made.append((builder.record_count, builder.build()))
    return made


class DeadLetterWriter:
    def __init__(self, broker: ShareContext) -> None:
        self._broker = broker
        self._topics = TopicWriter(broker, lambda: broker.peers, PURPOSE)

    async def write(self, letter: DeadLetter, counters: GroupCounters) -> bool:
        """Write the dead letters, with retries; on failure logs a warning and returns False."""
        try:
            await self._prepare(letter)
            position = letter.dead.first_offset
            while position <= letter.dead.last_offset:
                end, originals = await self._read(letter, position)
                config = self._topics.config_of(letter.topic)
                for count, data in batches_of(
                    letter,
                    range(position, end),
                    originals,
                    size_bytes_max=config.max_message_bytes,
                    now_ms=self._broker.now_ms(),
                ):
                    await self._produce(letter, data, counters)
                    counters.dead_letters += count
                position = end
        except ApiError as error:
            log.warning(
                "share group %s: could not write dead letters for %s offsets %d to %d: %s",
                letter.group_id,
                letter.source.name,
                letter.dead.first_offset,
                letter.dead.last_offset,
                error,
            )
            return False
        return True

    # The topic

    async def _prepare(self, letter: DeadLetter) -> None:
        """Check the DLQ topic, and create it if that is allowed; raises ApiError."""
        broker = self._broker
        options = DeadLetterOptions.resolve(broker.layers(broker.image, {}))
        found = broker.image.topics.named(letter.topic)
        check_topic(letter, found, self._topics.config_of(letter.topic).dead_letters_enable, options)
        if found is not None:
            return
        made = InternalTopic(
            partition_count=-1,
            replication_factor=-1,
            options={
                LogConfig.dead_letters_enable.name: "true",
                LogConfig.message_timestamp_type.name: "CreateTime",
            },
        )
        errors = await broker.auto_create([letter.topic], {letter.topic: made})
        for error in errors.values():
            raise error

    # Reading the records

    async def _read(self, letter: DeadLetter, position: int) -> tuple[int, Originals]:
        """The end offset of this round, and the keys and values by offset; without them if they cannot be read."""
        end = min(letter.dead.last_offset + 1, position + ROUND_OFFSETS_MAX)
        if not letter.is_copied:
            return end, {}
        try:
            return await self._read_records(letter.source, position, end)
        except (ApiError, OSError) as error:
            log.warning(
                "cannot copy records of %s from offset %d to dead letters: %s", letter.source.name, position, error
            )
            return end, {}

    async def _read_records(self, source: Partition, position: int, end: int) -> tuple[int, Originals]:
        piece = source.log.read(position, size_bytes_max=READ_BYTES, upto_offset=end, at_least_one=True)
        if piece is None:
            return end, {}
        try:
            found = await self._broker.in_thread(_records_in, piece)
        finally:
            piece.release()
        reached = max(found, default=end - 1) + 1
        return max(position + 1, min(reached, end)), found

    # Writing

    async def _produce(self, letter: DeadLetter, data: bytes, counters: GroupCounters) -> None:
        tries = 0
        while True:
            counters.dead_letter_requests += 1
            try:
                await self._send(letter, data)
            except ApiError as error:
                tries += 1
                if not error.retriable or tries >= TRIES_MAX:
                    counters.dead_letter_failures += 1
                    raise
            else:
                return
            await asyncio.sleep(min(FIRST_PAUSE_SECONDS * 2 ** (tries - 1), PAUSE_SECONDS_MAX))

    async def _send(self, letter: DeadLetter, data: bytes) -> None:
        await self._topics.append(letter.topic, letter.source.name.partition, data)


def _records_in(piece: LogSlice) -> Originals:
    """The key and value of every record in a slice of a log, by offset."""
    data = piece.file.read(piece.size, piece.position)
    return {
        record.offset: (record.key, record.value)
        for each in batch.split(data, partial_tail=True)
        if not each.header.is_control
        for record in batch.records_of(each.data)
    }
