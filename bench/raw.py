"""A raw, blocking connection that speaks just enough of Kafka's protocol to measure and to check a broker.

It shares no code with millbeck on purpose: the checker must not repeat the mistakes of what it checks. It knows fixed,
non-flexible versions (ApiVersions 0, Metadata 4, Produce 7, Fetch 11, CreateTopics 4, DeleteTopics 3), which Apache
Kafka 4.3 and every broker that follows it still serve, and the first version of DescribeQuorum. Requests may be
pipelined: `send` as many as wanted, then `receive` the replies in order.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import fastcrc

PRODUCE, FETCH, METADATA, API_VERSIONS, DESCRIBE_QUORUM = 0, 1, 3, 18, 55
CREATE_TOPICS, DELETE_TOPICS = 19, 20
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_HEADER_SIZE = 61
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class RawError(Exception):
    """The broker answered with an error code, or with bytes that make no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition as a broker's metadata has it; the leader is -1 while there is none."""

    leader: int
    replicas: list[int]
    isr: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBatch:
    """The header of one record batch as it lies in the log, and whether its checksum holds."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc_valid: bool
    codec: str
    log_append_time: bool
    transactional: bool
    control: bool
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


class Reader:
    """A cursor over one reply."""

    def __init__(self, payload: bytes | memoryview) -> None:
        self.payload = memoryview(payload)
        self.position = 0

    def take(self, layout: str) -> int:
        (value,) = struct.unpack_from(">" + layout, self.payload, self.position)
        self.position += struct.calcsize(">" + layout)
        return int(value)

    def string(self) -> str | None:
        size = self.take("h")
        if size < 0:
            return None
        self.position += size
        return bytes(self.payload[self.position - size : self.position]).decode()

    def blob(self) -> memoryview:
        size = max(0, self.take("i"))
        self.position += size
        return self.payload[self.position - size : self.position]


class RawConnection:
    """One TCP connection; every wait is bounded by `timeout_s`."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 30.0) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation_id = 0
        self._buffer = bytearray(1 << 20)

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def frame(self, api_key: int, version: int, body: bytes) -> bytes:
        self._correlation_id += 1
        header = struct.pack(">hhi", api_key, version, self._correlation_id) + _string("raw")
        return struct.pack(">i", len(header) + len(body)) + header + body

    def send(self, api_key: int, version: int, body: bytes) -> None:
        self.socket.sendall(self.frame(api_key, version, body))

    def _fill(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        filled = 0
        while filled < size:
            count = self.socket.recv_into(view[filled:])
            if count == 0:
                raise RawError("the broker closed the connection")
            filled += count
        return view

    def receive(self) -> Reader:
        """The next reply, positioned after its header. The bytes are valid until the next receive."""
        (size,) = struct.unpack(">i", self._fill(4))
        if not 4 <= size <= 1 << 30:
            raise RawError(f"a reply of {size} bytes")
        reader = Reader(self._fill(size))
        reader.take("i")
        return reader

    def call(self, api_key: int, version: int, body: bytes) -> Reader:
        self.send(api_key, version, body)
        return self.receive()

    def api_versions(self) -> dict[int, tuple[int, int]]:
        reply = self.call(API_VERSIONS, 0, b"")
        if error := reply.take("h"):
            raise RawError(f"ApiVersions: error {error}")
        return {reply.take("h"): (reply.take("h"), reply.take("h")) for _ in range(reply.take("i"))}

    def partition_leaders(self, topic: str, *, create: bool = False) -> dict[int, int]:
        """Partition to leader id; empty while the topic is not there or not led. `create` asks for auto-creation."""
        states = self.partition_states(topic, create=create)
        return {partition: state.leader for partition, state in states.items() if state.leader >= 0}

    def partition_states(self, topic: str, *, create: bool = False) -> dict[int, PartitionState]:
        reply = self.call(METADATA, 4, metadata_body([topic], create=create))
        reply.take("i")
        for _ in range(reply.take("i")):
            reply.take("i"), reply.string(), reply.take("i"), reply.string()
        reply.string(), reply.take("i")
        states: dict[int, PartitionState] = {}
        for _ in range(reply.take("i")):
            reply.take("h"), reply.string(), reply.take("b")
            for _ in range(reply.take("i")):
                reply.take("h")
                partition, leader = reply.take("i"), reply.take("i")
                replicas, isr = ([reply.take("i") for _ in range(reply.take("i"))] for _ in range(2))
                states[partition] = PartitionState(leader=leader, replicas=replicas, isr=isr)
        return states

    def create_topic(self, topic: str, partitions: int, *, config: Mapping[str, str], timeout_s: float = 25) -> None:
        """With one replica of each partition."""
        body = struct.pack(">i", 1) + _string(topic) + struct.pack(">ihii", partitions, 1, 0, len(config))
        body += b"".join(_string(name) + _string(value) for name, value in config.items())
        reply = self.call(CREATE_TOPICS, 4, body + struct.pack(">i?", int(timeout_s * 1000), False))
        reply.take("i"), reply.take("i"), reply.string()
        if error := reply.take("h"):
            raise RawError(f"CreateTopics: error {error}: {reply.string()}")

    def delete_topic(self, topic: str, *, timeout_s: float = 25) -> None:
        body = struct.pack(">i", 1) + _string(topic) + struct.pack(">i", int(timeout_s * 1000))
        reply = self.call(DELETE_TOPICS, 3, body)
        reply.take("i"), reply.take("i"), reply.string()
        if error := reply.take("h"):
            raise RawError(f"DeleteTopics: error {error}")

    def active_controller(self) -> int:
        """The node that leads the metadata quorum; -1 while nobody does."""
        name = b"__cluster_metadata"
        topics = b"\x02" + bytes([len(name) + 1]) + name + b"\x02" + struct.pack(">i", 0) + b"\0\0"
        # A flexible request: the tagged fields of its header stand before the body.
        reply = self.call(DESCRIBE_QUORUM, 0, b"\0" + topics + b"\0")
        reply.take("b")
        if error := reply.take("h"):
            raise RawError(f"DescribeQuorum: error {error}")
        reply.position += 1 + 1 + len(name) + 1
        reply.take("i")
        if error := reply.take("h"):
            raise RawError(f"DescribeQuorum: error {error}")
        return reply.take("i")

    def send_produce(self, topic: str, partition: int, records: bytes, *, acks: int = -1) -> None:
        self.send(PRODUCE, 7, produce_body(topic, partition, records, acks=acks))

    def receive_produce(self) -> tuple[int, int]:
        """(error code, base offset) of the one partition that was produced to."""
        reply = self.receive()
        reply.take("i"), reply.string(), reply.take("i"), reply.take("i")
        return reply.take("h"), reply.take("q")

    def send_fetch(self, topic: str, partition: int, offset: int, *, size_bytes_max: int, wait_ms: int = 500) -> None:
        body = struct.pack(">iiiibii", -1, wait_ms, 1, size_bytes_max, 0, 0, -1)
        body += struct.pack(">i", 1) + _string(topic) + struct.pack(">i", 1)
        body += struct.pack(">iiqqi", partition, -1, offset, -1, size_bytes_max)
        self.send(FETCH, 11, body + struct.pack(">i", 0) + _string(""))

    def receive_fetch(self) -> tuple[int, memoryview]:
        """(high watermark, record bytes) of the one partition that was fetched. Raises RawError on an error code."""
        reply = self.receive()
        reply.take("i")
        top_level = reply.take("h")
        reply.take("i")
        if top_level or reply.take("i") != 1:
            raise RawError(f"Fetch: error {top_level}")
        reply.string(), reply.take("i"), reply.take("i")
        error, high_watermark = reply.take("h"), reply.take("q")
        reply.take("q"), reply.take("q")
        for _ in range(max(0, reply.take("i"))):
            reply.take("q"), reply.take("q")
        reply.take("i")
        if error:
            raise RawError(f"Fetch: partition error {error}")
        return high_watermark, reply.blob()

    def stored_batches(self, topic: str, partition: int, offset: int = 0) -> Iterator[StoredBatch]:
        """Every batch from `offset` to the high watermark, as the broker stores it."""
        while True:
            self.send_fetch(topic, partition, offset, size_bytes_max=8 << 20, wait_ms=0)
            high_watermark, records = self.receive_fetch()
            found = list(read_batches(records))
            yield from (batch for batch in found if batch.next_offset > offset)
            if found:
                offset = found[-1].next_offset
            if offset >= high_watermark:
                return
            if not found:
                raise RawError(f"nothing to read at {offset} though the high watermark is {high_watermark}")


def metadata_body(topics: list[str], *, create: bool = False) -> bytes:
    return struct.pack(">i", len(topics)) + b"".join(map(_string, topics)) + struct.pack(">?", create)


def produce_body(topic: str, partition: int, records: bytes, *, acks: int) -> bytes:
    head = struct.pack(">hhii", -1, acks, 30_000, 1) + _string(topic)
    return head + struct.pack(">iii", 1, partition, len(records)) + records


def read_batches(records: memoryview) -> Iterator[StoredBatch]:
    """Headers of the whole batches in a fetched slice; a batch cut at the end is left out, as clients do."""
    position = 0
    while len(records) - position >= BATCH_HEADER_SIZE:
        fields = BATCH_HEADER.unpack_from(records, position)
        base_offset, length, epoch, magic, crc, attributes, last_delta, base_time, max_time, pid, pepoch, seq, count = (
            fields
        )
        size = length + 12
        if length < BATCH_HEADER_SIZE - 12:
            raise RawError(f"a batch of length {length} at byte {position}")
        if position + size > len(records):
            return
        yield StoredBatch(
            base_offset=base_offset,
            size_bytes=size,
            leader_epoch=epoch,
            magic=magic,
            crc_valid=fastcrc.crc32.iscsi(bytes(records[position + 21 : position + size])) == crc,
            codec=CODECS[attributes & 7] if attributes & 7 < len(CODECS) else f"unknown-{attributes & 7}",
            log_append_time=bool(attributes & 8),
            transactional=bool(attributes & 16),
            control=bool(attributes & 32),
            last_offset_delta=last_delta,
            base_timestamp_ms=base_time,
            max_timestamp_ms=max_time,
            producer_id=pid,
            producer_epoch=pepoch,
            base_sequence=seq,
            record_count=count,
        )
        position += size


def offset_after(records: memoryview, offset: int) -> int:
    """The offset after the last whole batch, found by hopping over headers alone."""
    position = 0
    while len(records) - position >= BATCH_HEADER_SIZE:
        base_offset, length = struct.unpack_from(">qi", records, position)
        if position + length + 12 > len(records):
            break
        (last_delta,) = struct.unpack_from(">i", records, position + 23)
        offset = base_offset + last_delta + 1
        position += length + 12
    return int(offset)


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while zigzag >= 0x80:
        encoded.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    encoded.append(zigzag)
    return bytes(encoded)


def build_batch(values: list[bytes], *, key: bytes | None = None, timestamp_ms: int | None = None) -> bytes:
    """An uncompressed batch of records without headers, not idempotent; all have the same key, or none."""
    now_ms = int(time.time() * 1000) if timestamp_ms is None else timestamp_ms
    body = bytearray()
    key_field = _varint(-1) if key is None else _varint(len(key)) + key
    for index, value in enumerate(values):
        record = b"\0" + _varint(0) + _varint(index) + key_field + _varint(len(value)) + value + _varint(0)
        body += _varint(len(record)) + record
    tail = struct.pack(">hiqqqhii", 0, len(values) - 1, now_ms, now_ms, -1, -1, -1, len(values)) + body
    crc = fastcrc.crc32.iscsi(bytes(tail))
    return struct.pack(">qiibI", 0, len(tail) + 9, -1, 2, crc) + tail


def wait_until_serving(bootstrap: str, *, deadline_s: float, pause_s: float = 0.005) -> None:
    """Return once the broker answers ApiVersions; raises TimeoutError at the deadline (a monotonic time)."""
    while time.monotonic() < deadline_s:
        try:
            with RawConnection(bootstrap, timeout_s=2.0) as connection:
                connection.api_versions()
                return
        except (OSError, RawError):
            time.sleep(pause_s)
    raise TimeoutError(f"nothing answers at {bootstrap}")


def wait_until_led(bootstrap: str, topic: str, partitions: int, *, timeout_s: float = 30.0) -> None:
    """A broker may list a partition a moment before it serves it; return when every partition can be read."""
    deadline_s = time.monotonic() + timeout_s
    with RawConnection(bootstrap) as connection:
        for partition in range(partitions):
            while True:
                try:
                    connection.send_fetch(topic, partition, 0, size_bytes_max=1, wait_ms=0)
                    connection.receive_fetch()
                    break
                except RawError:
                    if time.monotonic() > deadline_s:
                        raise
                    time.sleep(0.01)


def first_accepted_produce(bootstrap: str, topic: str, *, deadline_s: float) -> float:
    """Monotonic time at which the broker first acknowledged a record, creating the topic on the way."""
    batch = build_batch([b"first"])
    while time.monotonic() < deadline_s:
        try:
            with RawConnection(bootstrap, timeout_s=5.0) as connection:
                while time.monotonic() < deadline_s:
                    if 0 in connection.partition_leaders(topic, create=True):
                        connection.send_produce(topic, 0, batch)
                        if connection.receive_produce()[0] == 0:
                            return time.monotonic()
                    time.sleep(0.002)
        except (OSError, RawError):
            time.sleep(0.005)
    raise TimeoutError(f"no record was accepted at {bootstrap}")
