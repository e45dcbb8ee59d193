"""The functions that one produce and one warm fetch pass through in a broker, in the order they are called.

`trace` starts a node of a source tree in a child process that notes every call on its event loop, sends requests, and
returns the calls of the last produce and of the last fetch. The node runs on Python files: compiled functions are not
seen by `sys.setprofile`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

from bench.raw import RawConnection, wait_until_led
from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.framing import request_prefix
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData

T = TypeVar("T")

RECORDER: Final = str(Path(__file__).with_name("walk_recorder.py"))
TOPIC: Final = "walks"
PRODUCE_VERSION: Final = 12
FETCH_VERSION: Final = 12
API_KEYS: Final = {ProduceRequest: 0, FetchRequest: 1}
REQUESTS: Final = 20
"""Requests of each kind; the last is taken, when every cache is warm."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The calls of one request as (file, function), files relative to the package."""

    calls: list[tuple[str, str]]

    @property
    def file_changes(self) -> int:
        return _changes([file for file, _ in self.calls])

    @property
    def package_changes(self) -> int:
        return _changes([package_of(file) for file, _ in self.calls])


def package_of(file: str) -> str:
    """The package in ``millbeck``: the rooms of ``server`` are one."""
    return file.partition("/")[0]


def _changes(steps: list[str]) -> int:
    return sum(before != after for before, after in pairwise(steps))


def trace(tree: Path) -> dict[str, Walk]:
    """The walks of a tree by the name of the handler."""
    with tempfile.TemporaryDirectory(prefix="millbeck-walks-") as directory:
        notes = Path(directory) / "walks.json"
        order = {
            "directory": f"{directory}/log",
            "is_temporary": False,
            "parent": os.getpid(),
            "port": 0,
            "metrics_port": 0,
            "settings": {},
            "cluster_id": None,
        }
        with subprocess.Popen(
            [sys.executable, RECORDER, json.dumps(order), str(notes)],
            env={**os.environ, "PYTHONPATH": str(tree / "src"), "MILLBECK_PURE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as node:
            try:
                assert node.stdout is not None
                _send_requests(f"127.0.0.1:{json.loads(node.stdout.readline())['port']}")
            finally:
                node.send_signal(signal.SIGTERM)
                node.wait(30)
        found = json.loads(notes.read_text())
    return {name: Walk([(file, function) for file, function in calls]) for name, calls in found.items()}


def _send_requests(address: str) -> None:
    """Produces of one idempotent batch each, then fetches of one partition in a session, as clients of today send."""
    with RawConnection(address) as connection:
        connection.create_topic(TOPIC, 1, config={})
        wait_until_led(address, TOPIC, 1)
        for sequence in range(REQUESTS):
            record = Record(0, 1_700_000_000_000, None, b"value", ())
            batch = batches.build([record], producer_id=1, producer_epoch=0, base_sequence=sequence)
            partition = PartitionProduceData(0, batch)
            produce = ProduceRequest(
                acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[partition])]
            )
            answer = _ask(connection, ProduceResponse, produce, PRODUCE_VERSION)
            assert answer.responses[0].partition_responses[0].error_code == 0, answer
        session_id = 0
        for epoch in range(REQUESTS):
            wanted = FetchPartition(0, fetch_offset=0, partition_max_bytes=1 << 20)
            fetch = FetchRequest(
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=50 << 20,
                session_id=session_id,
                session_epoch=epoch,
                topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
            )
            fetched = _ask(connection, FetchResponse, fetch, FETCH_VERSION)
            assert fetched.responses[0].partitions[0].records, fetched
            session_id = fetched.session_id


def _ask(connection: RawConnection, response: type[T], request: object, version: int) -> T:
    body = encoder(type(request), version)(request)
    api_key = API_KEYS[type(request)]
    connection.socket.sendall(request_prefix(api_key, version, 1, "walks", len(body)) + body)
    reply = connection.receive()
    # `receive` has read the correlation id; the header of a flexible response ends with its tagged fields.
    answer, _ = decoder(response, version)(bytes(reply.payload), reply.position + 1)
    return answer
