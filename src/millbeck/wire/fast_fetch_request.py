"""Hand-written decoder of Fetch requests, for `millbeck.wire.fast_fetch`.

The decoder generated from `millbeck.wire.messages.fetch` is the reference. This one returns topics as pairs keyed by
name or id, and the follower's id in one attribute in every version.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final

from millbeck.wire.codec import REQUEST_OBJECT_COUNT_MAX
from millbeck.wire.compact import TopicKey
from millbeck.wire.decoder_source import skip_tags
from millbeck.wire.errors import DecodeError
from millbeck.wire.layout import TAGS_MAX
from millbeck.wire.messages.fetch import FetchPartition
from millbeck.wire.varint import continue_varint

FLEXIBLE_FROM: Final = 12
TOPIC_ID_FROM: Final = 13
_REPLICA_STATE_FROM: Final = 15
_DIRECTORY_ID_FROM: Final = 17
_HIGH_WATERMARK_FROM: Final = 18
_TOO_MANY: Final = "FetchRequest: more topics or partitions than there are bytes or than are allowed"


class FetchRequestView:
    """A decoded Fetch request. ``replica_id`` and ``replica_epoch`` are the follower's in every version, -1 for a
    consumer."""

    __slots__ = (
        "cluster_id",
        "forgotten",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "rack_id",
        "replica_epoch",
        "replica_id",
        "session_epoch",
        "session_id",
        "topics",
    )

    def __init__(
        self,
        replica_id: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        isolation_level: int,
        session_id: int,
        session_epoch: int,
        topics: list[tuple[TopicKey, list[FetchPartition]]],
        forgotten: list[tuple[TopicKey, list[int]]],
        rack_id: str = "",
        cluster_id: str | None = None,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten = forgotten
        self.rack_id = rack_id
        self.cluster_id = cluster_id
        self.replica_epoch = replica_epoch


def decode_fetch_request(version: int, buffer: bytes | memoryview, position: int = 0) -> tuple[FetchRequestView, int]:
    """Decode the request at ``position``; return it and the position after it. Raises DecodeError if malformed."""
    data = buffer if isinstance(buffer, bytes) else bytes(buffer)
    try:
        if version < FLEXIBLE_FROM:
            request, position = _decode_legacy(version, data, position)
        else:
            request, position = _decode_flexible(version, data, position)
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"FetchRequest v{version}: {error}") from None
    if position > len(data):
        raise DecodeError(f"FetchRequest v{version}: cut off")
    return request, position


_read_int16: Final = Struct(">h").unpack_from
_read_int32: Final = Struct(">i").unpack_from
_read_v4_head: Final = Struct(">iiiibi").unpack_from
_read_v7_head: Final = Struct(">iiiibiii").unpack_from
_read_v4_partition: Final = Struct(">iqi").unpack_from
_read_v5_partition: Final = Struct(">iqqi").unpack_from
_read_v9_partition: Final = Struct(">iiqqi").unpack_from


def _decode_legacy(version: int, data: bytes, position: int) -> tuple[FetchRequestView, int]:
    end = len(data)
    if version < 7:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, topic_count = _read_v4_head(data, position)
        session_id, session_epoch = 0, -1
        position += 21
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topic_count = (
            _read_v7_head(data, position)
        )
        position += 29
    if not 0 <= topic_count * 6 <= end - position:
        raise DecodeError(_TOO_MANY)
    budget = REQUEST_OBJECT_COUNT_MAX - topic_count * 3
    if budget < 0:
        raise DecodeError(_TOO_MANY)
    topics: list[tuple[TopicKey, list[FetchPartition]]] = []
    for _ in range(topic_count):
        name, count, position = _read_legacy_topic(data, position)
        budget -= count * 3
        if not 0 <= count * 16 <= end - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        partitions = []
        for _ in range(count):
            if version >= 9:
                index, epoch, offset, log_start_offset, max_size = _read_v9_partition(data, position)
                position += 28
            elif version >= 5:
                index, offset, log_start_offset, max_size = _read_v5_partition(data, position)
                epoch = -1
                position += 24
            else:
                index, offset, max_size = _read_v4_partition(data, position)
                epoch = log_start_offset = -1
                position += 16
            partitions.append(FetchPartition(index, epoch, offset, -1, log_start_offset, max_size))
        topics.append((name, partitions))
    forgotten: list[tuple[TopicKey, list[int]]] = []
    rack_id = ""
    if version >= 7:
        forgotten, position = _read_legacy_forgotten(data, position, budget)
    if version >= 11:
        (size,) = _read_int16(data, position)
        if size < 0:
            raise DecodeError("FetchRequest: rack_id must not be null")
        stop = position + 2 + size
        rack_id = data[position + 2 : stop].decode()
        position = stop
    request = FetchRequestView(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
    return request, position


def _read_legacy_topic(data: bytes, position: int) -> tuple[str, int, int]:
    """Read a topic's name and the count after it; return both and the position after them."""
    (size,) = _read_int16(data, position)
    if size < 0:
        raise DecodeError("FetchRequest: a topic's name must not be null")
    stop = position + 2 + size
    name = data[position + 2 : stop].decode()
    (count,) = _read_int32(data, stop)
    return name, count, stop + 4


def _read_legacy_forgotten(data: bytes, position: int, budget: int) -> tuple[list[tuple[TopicKey, list[int]]], int]:
    (topic_count,) = _read_int32(data, position)
    position += 4
    budget -= topic_count * 3
    if not 0 <= topic_count * 6 <= len(data) - position or budget < 0:
        raise DecodeError(_TOO_MANY)
    forgotten: list[tuple[TopicKey, list[int]]] = []
    for _ in range(topic_count):
        name, count, position = _read_legacy_topic(data, position)
        budget -= count
        if not 0 <= count * 4 <= len(data) - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        stop = position + count * 4
        forgotten.append((name, [index for (index,) in _each_int32(data[position:stop])]))
        position = stop
    return forgotten, position


_each_int32: Final = Struct(">i").iter_unpack
_read_v12_head: Final = Struct(">iiiibiiB").unpack_from
_read_v15_head: Final = Struct(">iiibiiB").unpack_from
_read_v12_partition: Final = Struct(">iiqiqiB").unpack_from
_read_int64: Final = Struct(">q").unpack_from
_read_replica_state: Final = Struct(">iqB").unpack_from


def _decode_flexible(version: int, data: bytes, position: int) -> tuple[FetchRequestView, int]:
    end = len(data)
    replica_id = -1
    if version < _REPLICA_STATE_FROM:
        (
            replica_id,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topic_count,
        ) = _read_v12_head(data, position)
        position += 26
    else:
        max_wait_ms, min_bytes, max_bytes, isolation_level, session_id, session_epoch, topic_count = _read_v15_head(
            data, position
        )
        position += 22
    if topic_count > 127:
        topic_count, position = continue_varint(data, position, topic_count)
    topic_count -= 1
    budget = REQUEST_OBJECT_COUNT_MAX - topic_count * 3
    if not 0 <= topic_count * 3 <= end - position or budget < 0:
        raise DecodeError(_TOO_MANY)
    topics: list[tuple[TopicKey, list[FetchPartition]]] = []
    for _ in range(topic_count):
        key, count, position = _read_flexible_topic(version, data, position)
        budget -= count * 3
        if not 0 <= count * 33 <= end - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        partitions = []
        for _ in range(count):
            index, epoch, offset, fetched_epoch, log_start_offset, max_size, tag_count = _read_v12_partition(
                data, position
            )
            position += 33
            partition = FetchPartition(index, epoch, offset, fetched_epoch, log_start_offset, max_size)
            if tag_count:
                position = _read_partition_tags(version, data, position, tag_count, partition)
            partitions.append(partition)
        topics.append((key, partitions))
        tag_count = data[position]
        position += 1
        if tag_count:
            position = skip_tags(data, position, tag_count)
    forgotten, position = _read_flexible_forgotten(version, data, position, budget)
    size = data[position]
    position += 1
    if size > 127:
        size, position = continue_varint(data, position, size)
    if not size:
        raise DecodeError("FetchRequest: rack_id must not be null")
    stop = position + size - 1
    rack_id = data[position:stop].decode()
    tag_count = data[stop]
    position = stop + 1
    request = FetchRequestView(
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten,
        rack_id,
    )
    if tag_count:
        position = _read_request_tags(version, data, position, tag_count, request)
    return request, position


def _read_flexible_topic(version: int, data: bytes, position: int) -> tuple[TopicKey, int, int]:
    """Read a topic's name or id and the count after it; return both and the position after them."""
    key: TopicKey
    if version >= TOPIC_ID_FROM:
        stop = position + 16
        key = data[position:stop]
    else:
        size = data[position]
        position += 1
        if size > 127:
            size, position = continue_varint(data, position, size)
        if not size:
            raise DecodeError("FetchRequest: a topic's name must not be null")
        stop = position + size - 1
        key = data[position:stop].decode()
    count = data[stop]
    position = stop + 1
    if count > 127:
        count, position = continue_varint(data, position, count)
    return key, count - 1, position


def _read_flexible_forgotten(
    version: int, data: bytes, position: int, budget: int
) -> tuple[list[tuple[TopicKey, list[int]]], int]:
    topic_count = data[position]
    position += 1
    if topic_count == 1:
        return [], position
    if topic_count > 127:
        topic_count, position = continue_varint(data, position, topic_count)
    topic_count -= 1
    budget -= topic_count * 3
    if not 0 <= topic_count * 3 <= len(data) - position or budget < 0:
        raise DecodeError(_TOO_MANY)
    forgotten: list[tuple[TopicKey, list[int]]] = []
    for _ in range(topic_count):
        key, count, position = _read_flexible_topic(version, data, position)
        budget -= count
        if not 0 <= count * 4 <= len(data) - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        stop = position + count * 4
        forgotten.append((key, [index for (index,) in _each_int32(data[position:stop])]))
        tag_count = data[stop]
        position = stop + 1
        if tag_count:
            position = skip_tags(data, position, tag_count)
    return forgotten, position


def _read_tag(data: bytes, position: int) -> tuple[int, int, int]:
    """Read a tagged field's header: the tag, and the start and end of its content."""
    tag = data[position]
    position += 1
    if tag > 127:
        tag, position = continue_varint(data, position, tag)
    size = data[position]
    position += 1
    if size > 127:
        size, position = continue_varint(data, position, size)
    return tag, position, position + size


def _tag_count(data: bytes, position: int, first: int) -> tuple[int, int]:
    count = first
    if count > 127:
        count, position = continue_varint(data, position, count)
    if count > TAGS_MAX:
        raise DecodeError(f"FetchRequest: {count} tagged fields")
    return count, position


def _read_partition_tags(version: int, data: bytes, position: int, first: int, partition: FetchPartition) -> int:
    count, position = _tag_count(data, position, first)
    for _ in range(count):
        tag, start, position = _read_tag(data, position)
        size = position - start
        if tag == 0 and version >= _DIRECTORY_ID_FROM:
            if size != 16:
                raise DecodeError("FetchRequest: replica_directory_id does not fill its tag")
            partition.replica_directory_id = data[start:position]
        elif tag == 1 and version >= _HIGH_WATERMARK_FROM:
            if size != 8:
                raise DecodeError("FetchRequest: high_watermark does not fill its tag")
            (partition.high_watermark,) = _read_int64(data, start)
    return position


def _read_request_tags(version: int, data: bytes, position: int, first: int, request: FetchRequestView) -> int:
    count, position = _tag_count(data, position, first)
    for _ in range(count):
        tag, start, position = _read_tag(data, position)
        if tag == 0:
            size, start = data[start], start + 1
            if size > 127:
                size, start = continue_varint(data, start, size)
            stop = start + size - 1 if size else start
            request.cluster_id = data[start:stop].decode() if size else None
            if stop != position:
                raise DecodeError("FetchRequest: cluster_id does not fill its tag")
        elif tag == 1 and version >= _REPLICA_STATE_FROM:
            request.replica_id, request.replica_epoch, tag_count = _read_replica_state(data, start)
            stop = start + 13
            if tag_count:
                stop = skip_tags(data, stop, tag_count)
            if stop != position:
                raise DecodeError("FetchRequest: replica_state does not fill its tag")
    return position
