"""Hand-written codecs for Produce: requests are decoded without copying the records.

The codecs generated from `millbeck.wire.messages.produce` are the reference; these produce the same bytes and exist for
speed and for the view of the records, which must not outlive its buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final

from millbeck.wire.codec import REQUEST_OBJECT_COUNT_MAX
from millbeck.wire.compact import TopicKey, compact_string, node_endpoints_section
from millbeck.wire.decoder_source import skip_tags
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.produce import BatchIndexAndErrorMessage
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from millbeck.wire.varint import SMALL, continue_varint, unsigned_varint

ProduceTopic = tuple[TopicKey, list[tuple[int, memoryview | None]]]

FLEXIBLE_FROM: Final = 9
TOPIC_ID_FROM: Final = 13
_NODE_ENDPOINTS_FROM: Final = 10
_TOO_MANY: Final = "ProduceRequest: more topics or partitions than there are bytes or than are allowed"


class ProduceRequestView:
    """A decoded Produce request whose records are views into the request buffer."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[ProduceTopic]) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics


class PartitionResult:
    """The result of one partition's batch; all fields but the index default to the values of a failure."""

    __slots__ = (
        "base_offset",
        "current_leader",
        "error_code",
        "error_message",
        "index",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(
        self,
        index: int,
        error_code: int = 0,
        base_offset: int = -1,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        error_message: str | None = None,
        record_errors: Sequence[BatchIndexAndErrorMessage] = (),
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.error_message = error_message
        self.record_errors = record_errors
        self.current_leader = current_leader


def decode_produce_request(
    version: int, buffer: bytes | memoryview, position: int = 0
) -> tuple[ProduceRequestView, int]:
    """Decode the request at ``position``; return it and the position after it. Raises DecodeError if malformed."""
    view = buffer if buffer.__class__ is memoryview else memoryview(buffer)
    try:
        if version < FLEXIBLE_FROM:
            request, position = _decode_legacy(view, position)
        else:
            request, position = _decode_flexible(view, position, version >= TOPIC_ID_FROM)
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"ProduceRequest v{version}: {error}") from None
    if position > len(view):
        raise DecodeError(f"ProduceRequest v{version}: cut off")
    return request, position


_read_legacy_head: Final = Struct(">hhii").unpack_from
_read_legacy_rest: Final = Struct(">hii").unpack_from
_read_int16: Final = Struct(">h").unpack_from
_read_int32: Final = Struct(">i").unpack_from
_read_legacy_partition: Final = Struct(">ii").unpack_from


def _decode_legacy(view: memoryview, position: int) -> tuple[ProduceRequestView, int]:
    # When compiled, an annotated integer is a machine word; others stay objects.
    size: int
    acks: int
    topic_count: int
    partition_count: int
    index: int
    end = len(view)
    transactional_id = None
    # Most producers have no transactional id: read the whole head on the assumption that its length is null.
    size, acks, timeout_ms, topic_count = _read_legacy_head(view, position)
    if size < 0:
        position += 12
    else:
        stop = position + 2 + size
        transactional_id = str(view[position + 2 : stop], "utf-8")
        acks, timeout_ms, topic_count = _read_legacy_rest(view, stop)
        position = stop + 10
    if not 0 <= topic_count * 6 <= end - position:
        raise DecodeError(_TOO_MANY)
    budget = REQUEST_OBJECT_COUNT_MAX - topic_count * 3
    if budget < 0:
        raise DecodeError(_TOO_MANY)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        (size,) = _read_int16(view, position)
        if size < 0:
            raise DecodeError("ProduceRequest: a topic's name must not be null")
        stop = position + 2 + size
        name = str(view[position + 2 : stop], "utf-8")
        (partition_count,) = _read_int32(view, stop)
        position = stop + 4
        budget -= partition_count * 2
        if not 0 <= partition_count * 8 <= end - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count):
            index, size = _read_legacy_partition(view, position)
            position += 8
            if size < 0:
                partitions.append((index, None))
            else:
                stop = position + size
                partitions.append((index, view[position:stop]))
                position = stop
        topics.append((name, partitions))
    return ProduceRequestView(transactional_id, acks, timeout_ms, topics), position


_read_flexible_head: Final = Struct(">BhiB").unpack_from
_read_flexible_rest: Final = Struct(">hiB").unpack_from
_read_flexible_partition: Final = Struct(">iB").unpack_from


def _decode_flexible(view: memoryview, position: int, by_id: bool) -> tuple[ProduceRequestView, int]:
    size: int
    acks: int
    topic_count: int
    index: int
    end = len(view)
    transactional_id = None
    size, acks, timeout_ms, topic_count = _read_flexible_head(view, position)
    if size == 0:
        position += 8
    else:
        position += 1
        if size > 127:
            size, position = continue_varint(view, position, size)
        # Zero may be encoded in more bytes than necessary.
        stop = position + size - 1 if size else position
        transactional_id = str(view[position:stop], "utf-8") if size else None
        acks, timeout_ms, topic_count = _read_flexible_rest(view, stop)
        position = stop + 7
    if topic_count > 127:
        topic_count, position = continue_varint(view, position, topic_count)
    topic_count -= 1
    if not 0 <= topic_count * 3 <= end - position:
        raise DecodeError(_TOO_MANY)
    budget = REQUEST_OBJECT_COUNT_MAX - topic_count * 3
    if budget < 0:
        raise DecodeError(_TOO_MANY)
    topics: list[ProduceTopic] = []
    for _ in range(topic_count):
        key: TopicKey
        if by_id:
            stop = position + 16
            key = bytes(view[position:stop])
        else:
            size = view[position]
            position += 1
            if size > 127:
                size, position = continue_varint(view, position, size)
            if not size:
                raise DecodeError("ProduceRequest: a topic's name must not be null")
            stop = position + size - 1
            key = str(view[position:stop], "utf-8")
        partition_count = view[stop]
        position = stop + 1
        if partition_count > 127:
            partition_count, position = continue_varint(view, position, partition_count)
        partition_count -= 1
        budget -= partition_count * 2
        if not 0 <= partition_count * 6 <= end - position or budget < 0:
            raise DecodeError(_TOO_MANY)
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count):
            index, size = _read_flexible_partition(view, position)
            position += 5
            if size > 127:
                size, position = continue_varint(view, position, size)
            if not size:
                partitions.append((index, None))
            else:
                stop = position + size - 1
                partitions.append((index, view[position:stop]))
                position = stop
            tag_count = view[position]
            position += 1
            if tag_count:
                position = skip_tags(view, position, tag_count)
        topics.append((key, partitions))
        tag_count = view[position]
        position += 1
        if tag_count:
            position = skip_tags(view, position, tag_count)
    tag_count = view[position]
    position += 1
    if tag_count:
        position = skip_tags(view, position, tag_count)
    return ProduceRequestView(transactional_id, acks, timeout_ms, topics), position


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """Encode the whole response frame, including length and header.

    Topics are keyed as in the request. ``node_endpoints`` and a result's details are only written in versions that have
    them.
    """
    if version < FLEXIBLE_FROM:
        return _encode_legacy(version, correlation_id, topics, throttle_time_ms)
    return _encode_flexible(version, correlation_id, topics, throttle_time_ms, node_endpoints)


_pack_legacy_head: Final = Struct(">iii").pack
_pack_int16: Final = Struct(">h").pack
_pack_int32: Final = Struct(">i").pack
_pack_v3: Final = Struct(">ihqq").pack
_pack_v5: Final = Struct(">ihqqq").pack
_pack_v8: Final = Struct(">ihqqqih").pack


def _encode_legacy(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    throttle_time_ms: int,
) -> bytes:
    parts: list[bytes] = [b""]
    add = parts.append
    for key, results in topics:
        name = key.encode() if isinstance(key, str) else key
        add(_pack_int16(len(name)))
        add(name)
        add(_pack_int32(len(results)))
        for result in results:
            if version < 5:
                add(_pack_v3(result.index, result.error_code, result.base_offset, result.log_append_time_ms))
            elif version < 8:
                add(
                    _pack_v5(
                        result.index,
                        result.error_code,
                        result.base_offset,
                        result.log_append_time_ms,
                        result.log_start_offset,
                    )
                )
            else:
                _add_legacy_v8(parts, result)
    add(_pack_int32(throttle_time_ms))
    body = b"".join(parts)
    return _pack_legacy_head(len(body) + 8, correlation_id, len(topics)) + body


def _add_legacy_v8(parts: list[bytes], result: PartitionResult) -> None:
    if not result.record_errors and result.error_message is None:
        parts.append(
            _pack_v8(
                result.index,
                result.error_code,
                result.base_offset,
                result.log_append_time_ms,
                result.log_start_offset,
                0,
                -1,
            )
        )
        return
    parts.append(
        _pack_v5(
            result.index, result.error_code, result.base_offset, result.log_append_time_ms, result.log_start_offset
        )
    )
    parts.append(_pack_int32(len(result.record_errors)))
    for record_error in result.record_errors:
        parts.append(_pack_int32(record_error.batch_index))
        parts.append(_legacy_string(record_error.batch_index_error_message))
    parts.append(_legacy_string(result.error_message))


def _legacy_string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    encoded = text.encode()
    return _pack_int16(len(encoded)) + encoded


_pack_flexible_prefix: Final = Struct(">iix").pack
_pack_plain_result: Final = Struct(">ihqqqBxx").pack
_pack_leader: Final = Struct(">BBBiix").pack
_pack_lone_head: Final = Struct(">iixB").pack
_pack_lone_result: Final = Struct(">BihqqqBxxxix").pack


def _encode_flexible(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    throttle_time_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    if len(topics) == 1 and not node_endpoints:
        key, results = topics[0]
        if len(results) == 1 and results[0].error_code == 0:
            return _encode_lone_result(correlation_id, key, results[0], throttle_time_ms)
    parts: list[bytes] = [unsigned_varint(len(topics) + 1)]
    add = parts.append
    for key, results in topics:
        if isinstance(key, str):
            name = key.encode()
            add(unsigned_varint(len(name) + 1))
            add(name)
        else:
            add(key)
        count = len(results) + 1
        add(SMALL[count] if count < 1024 else unsigned_varint(count))
        for result in results:
            if result.error_code == 0:
                # No record errors, null message, no tags: a count of one and two zero bytes.
                add(
                    _pack_plain_result(
                        result.index, 0, result.base_offset, result.log_append_time_ms, result.log_start_offset, 1
                    )
                )
            else:
                _add_failure(parts, result, version)
        add(b"\0")
    add(_pack_int32(throttle_time_ms))
    if node_endpoints and version >= _NODE_ENDPOINTS_FROM:
        add(node_endpoints_section(node_endpoints))
    else:
        add(b"\0")
    body = b"".join(parts)
    return _pack_flexible_prefix(len(body) + 5, correlation_id) + body


def _encode_lone_result(correlation_id: int, key: TopicKey, result: PartitionResult, throttle_time_ms: int) -> bytes:
    """Fast path for one successful batch, the most common response."""
    name = compact_string(key) if isinstance(key, str) else key
    rest = _pack_lone_result(
        2, result.index, 0, result.base_offset, result.log_append_time_ms, result.log_start_offset, 1, throttle_time_ms
    )
    return _pack_lone_head(6 + len(name) + len(rest), correlation_id, 2) + name + rest


def _add_failure(parts: list[bytes], result: PartitionResult, version: int) -> None:
    parts.append(
        _pack_v5(
            result.index, result.error_code, result.base_offset, result.log_append_time_ms, result.log_start_offset
        )
    )
    parts.append(unsigned_varint(len(result.record_errors) + 1))
    for record_error in result.record_errors:
        parts.append(_pack_int32(record_error.batch_index))
        parts.append(compact_string(record_error.batch_index_error_message))
        parts.append(b"\0")
    parts.append(compact_string(result.error_message))
    leader = result.current_leader
    if leader is None or version < _NODE_ENDPOINTS_FROM:
        parts.append(b"\0")
    else:
        parts.append(_pack_leader(1, 0, 9, leader.leader_id, leader.leader_epoch))
