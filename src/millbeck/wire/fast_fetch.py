"""Hand-written encoder of Fetch responses: written around records that stay in their files.

The codecs generated from `millbeck.wire.messages.fetch` are the reference; this one produces the same bytes. A response
is a list of parts: encoded bytes, and between them a partition's records as the caller passed them, usually file
slices, so that a megabyte of records costs as much here as one record.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from millbeck.kernel.environment import Part
from millbeck.wire.compact import TopicKey, node_endpoints_section
from millbeck.wire.fast_fetch_request import FLEXIBLE_FROM, FetchRequestView, decode_fetch_request
from millbeck.wire.messages.fetch import AbortedTransaction, EpochEndOffset, SnapshotId
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from millbeck.wire.varint import SMALL, unsigned_varint

__all__ = ["FetchRequestView", "PartitionResult", "TopicKey", "decode_fetch_request", "encode_fetch_response"]

_NODE_ENDPOINTS_FROM: Final = 16


class PartitionResult:
    """A partition's fetch result. ``records`` are parts whose sizes add up to ``records_size``."""

    __slots__ = (
        "aborted_transactions",
        "current_leader",
        "diverging_epoch",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "partition_index",
        "preferred_read_replica",
        "records",
        "records_size",
        "snapshot_id",
    )

    def __init__(
        self,
        partition_index: int,
        error_code: int = 0,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records_size: int = 0,
        records: Sequence[Part] = (),
        aborted_transactions: Sequence[AbortedTransaction] | None = None,
        preferred_read_replica: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records_size = records_size
        self.records = records
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id


def encode_fetch_response(
    version: int,
    correlation_id: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    responses: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Part]:
    """Encode the response frame as parts, including length and header, with the results' records in place.

    Topics are keyed as in the request. Fields that do not exist in the version are left out.
    """
    writer = _PartWriter()
    if version < FLEXIBLE_FROM:
        _write_legacy(writer, version, throttle_time_ms, error_code, session_id, responses)
        return writer.finish(_pack_legacy_prefix, 4, correlation_id)
    _write_flexible(writer, version, throttle_time_ms, error_code, session_id, responses, node_endpoints)
    return writer.finish(_pack_flexible_prefix, 5, correlation_id)


_pack_legacy_prefix: Final = Struct(">ii")
_pack_flexible_prefix: Final = Struct(">iix")


class _PartWriter:
    """Collects encoded bytes into one part between two parts of records."""

    __slots__ = ("_parts", "_size", "pieces")

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._parts: list[Part] = []
        self._size = 0

    def add_records(self, size: int, records: Sequence[Part]) -> None:
        piece = b"".join(self.pieces)
        self.pieces.clear()
        self._parts.append(piece)
        self._parts.extend(records)
        self._size += len(piece) + size

    def finish(self, prefix: Struct, header_size: int, correlation_id: int) -> list[Part]:
        piece = b"".join(self.pieces)
        parts = self._parts
        parts.append(piece)
        first = parts[0]
        assert isinstance(first, bytes)
        parts[0] = prefix.pack(self._size + len(piece) + header_size, correlation_id) + first
        return parts


_pack_int16: Final = Struct(">h").pack
_pack_int32: Final = Struct(">i").pack
_pack_v4_head: Final = Struct(">ii").pack
_pack_v7_head: Final = Struct(">ihii").pack
_pack_v4_partition: Final = Struct(">ihqqi").pack
_pack_v5_partition: Final = Struct(">ihqqqi").pack
_pack_aborted: Final = Struct(">qq").pack


def _write_legacy(
    writer: _PartWriter,
    version: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    responses: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
) -> None:
    pieces = writer.pieces
    add = pieces.append
    if version < 7:
        add(_pack_v4_head(throttle_time_ms, len(responses)))
    else:
        add(_pack_v7_head(throttle_time_ms, error_code, session_id, len(responses)))
    for key, results in responses:
        name = key.encode() if isinstance(key, str) else key
        add(_pack_int16(len(name)))
        add(name)
        add(_pack_int32(len(results)))
        for result in results:
            aborted = result.aborted_transactions
            aborted_count = -1 if aborted is None else len(aborted)
            index, code, high = result.partition_index, result.error_code, result.high_watermark
            if version < 5:
                add(_pack_v4_partition(index, code, high, result.last_stable_offset, aborted_count))
            else:
                stable, start = result.last_stable_offset, result.log_start_offset
                add(_pack_v5_partition(index, code, high, stable, start, aborted_count))
            if aborted:
                pieces += [_pack_aborted(entry.producer_id, entry.first_offset) for entry in aborted]
            if version >= 11:
                add(_pack_int32(result.preferred_read_replica))
            add(_pack_int32(result.records_size))
            if result.records_size:
                writer.add_records(result.records_size, result.records)


_pack_flexible_head: Final = Struct(">ihi").pack
_pack_plain_partition: Final = Struct(">ihqqqxi").pack
_pack_partition_head: Final = Struct(">ihqqq").pack
_pack_flexible_aborted: Final = Struct(">qqx").pack


def _write_flexible(
    writer: _PartWriter,
    version: int,
    throttle_time_ms: int,
    error_code: int,
    session_id: int,
    responses: Sequence[tuple[TopicKey, Sequence[PartitionResult]]],
    node_endpoints: Sequence[NodeEndpoint],
) -> None:
    pieces = writer.pieces
    add = pieces.append
    add(_pack_flexible_head(throttle_time_ms, error_code, session_id))
    add(unsigned_varint(len(responses) + 1))
    for key, results in responses:
        if isinstance(key, str):
            name = key.encode()
            add(unsigned_varint(len(name) + 1))
            add(name)
        else:
            add(key)
        add(unsigned_varint(len(results) + 1))
        for result in results:
            index, code, high = result.partition_index, result.error_code, result.high_watermark
            stable, start = result.last_stable_offset, result.log_start_offset
            if result.aborted_transactions is None:
                add(_pack_plain_partition(index, code, high, stable, start, result.preferred_read_replica))
            else:
                add(_pack_partition_head(index, code, high, stable, start))
                add(unsigned_varint(len(result.aborted_transactions) + 1))
                pieces += [
                    _pack_flexible_aborted(entry.producer_id, entry.first_offset)
                    for entry in result.aborted_transactions
                ]
                add(_pack_int32(result.preferred_read_replica))
            size = result.records_size
            add(SMALL[size + 1] if size < 1023 else unsigned_varint(size + 1))
            if size:
                writer.add_records(size, result.records)
            add(_partition_tags(result))
        add(b"\0")
    add(node_endpoints_section(node_endpoints) if node_endpoints and version >= _NODE_ENDPOINTS_FROM else b"\0")


_pack_diverging: Final = Struct(">BBiqx").pack
_pack_leader: Final = Struct(">BBiix").pack
_pack_snapshot: Final = Struct(">BBqix").pack


def _partition_tags(result: PartitionResult) -> bytes:
    diverging, leader, snapshot = result.diverging_epoch, result.current_leader, result.snapshot_id
    if diverging is None and leader is None and snapshot is None:
        return b"\0"
    tags = []
    if diverging is not None:
        tags.append(_pack_diverging(0, 13, diverging.epoch, diverging.end_offset))
    if leader is not None:
        tags.append(_pack_leader(1, 9, leader.leader_id, leader.leader_epoch))
    if snapshot is not None:
        tags.append(_pack_snapshot(2, 13, snapshot.end_offset, snapshot.epoch))
    return SMALL[len(tags)] + b"".join(tags)
