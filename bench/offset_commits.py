"""`python -m bench.offset_commits`: ten million offset commits on 1,000 keys, and the coordinator after a restart.

One group commits offsets of 1,000 partitions, all of them in every request, over a real socket. While it does, the
size of the offsets topic is looked at; then the node is killed and started again, and the time is taken until the
coordinator serves the group's offsets, which must be those committed last. Goals: the topic stays bounded, whatever was
written to it, and the coordinator is back in at most 2 s.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import machine, raw
from bench.measure import Bench
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, Node
from millbeck.wire import codec
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

MEGA = 1_000_000
GROUP = "commits"
OFFSET_COMMIT, COMMIT_VERSION = 8, 2
OFFSET_FETCH, FETCH_VERSION = 9, 5
IN_FLIGHT = 4
LOOK_EVERY_REQUESTS = 100
LOAD_PATIENCE_S = 120.0
OVERRIDES = {"log.cleaner.backoff.ms": "1000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Commits:
    count: int
    seconds: float
    written_bytes: int
    size_bytes_max: int
    size_bytes_end: int
    start_seconds: float
    load_seconds: float
    """From the first accepted connection to the first answer with offsets."""


def offsets_bytes(node: Node) -> int:
    """What the logs of the offsets topic take, files that are still to be deleted left out."""
    size = 0
    for path in node.data.glob("__consumer_offsets-*/*.log"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue  # compacted away just now
    return size


def _commit_body(topic: str, partitions: int, offset: int) -> bytes:
    wanted = [OffsetCommitRequestPartition(index, committed_offset=offset + index) for index in range(partitions)]
    request = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name=topic, partitions=wanted)], retention_time_ms=-1
    )
    return codec.encoder(OffsetCommitRequest, COMMIT_VERSION)(request)


def _answer(connection: raw.RawConnection, response: type[Any], version: int) -> Any:
    reader = connection.receive()
    found, _ = codec.decoder(response, version)(reader.payload, reader.position)
    return found


def commit(node: Node, topic: str, *, keys: int, rounds: int) -> tuple[float, int, int]:
    """All rounds; (seconds, the largest size seen, offset of the last round)."""
    largest, waiting = 0, deque[int]()
    began = time.monotonic()
    with raw.RawConnection(node.bootstrap) as connection:
        for number in range(rounds):
            connection.send(OFFSET_COMMIT, COMMIT_VERSION, _commit_body(topic, keys, number * keys))
            waiting.append(number)
            while len(waiting) >= IN_FLIGHT or (waiting and number == rounds - 1):
                waiting.popleft()
                answer = _answer(connection, OffsetCommitResponse, COMMIT_VERSION)
                failed = [each.error_code for each in answer.topics[0].partitions if each.error_code]
                if failed:
                    raise RuntimeError(f"a commit was refused with error {failed[0]}")
            if number % LOOK_EVERY_REQUESTS == 0:
                largest = max(largest, offsets_bytes(node))
    return time.monotonic() - began, max(largest, offsets_bytes(node)), (rounds - 1) * keys


def wait_until_loaded(node: Node, topic: str, *, keys: int, offset: int) -> float:
    """Seconds until the coordinator serves the offsets; they must be the last ones."""
    wanted = OffsetFetchRequest(
        group_id=GROUP, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(keys)))]
    )
    body = codec.encoder(OffsetFetchRequest, FETCH_VERSION)(wanted)
    began = time.monotonic()
    with raw.RawConnection(node.bootstrap) as connection:
        while True:
            connection.send(OFFSET_FETCH, FETCH_VERSION, body)
            answer = _answer(connection, OffsetFetchResponse, FETCH_VERSION)
            if not answer.error_code:
                break
            if time.monotonic() - began > LOAD_PATIENCE_S:
                raise TimeoutError(f"the coordinator still answers with error {answer.error_code}")
            time.sleep(0.005)
        seconds = time.monotonic() - began
    found = {each.partition_index: each.committed_offset for each in answer.topics[0].partitions}
    if found != {index: offset + index for index in range(keys)}:
        raise RuntimeError("the offsets after the restart are not those that were committed last")
    return seconds


def measure(directory: Path, *, count: int, keys: int) -> Commits:
    broker_core, client_core = machine.cores()
    node = SYSTEMS["millbeck"](directory, core=broker_core, overrides=OVERRIDES)
    with node:
        bench = Bench(node, client_core=client_core)
        topic = bench.new_topic(partitions=keys)
        with raw.RawConnection(node.bootstrap) as connection:
            # The first one has the offsets topic made; it is asked again until the coordinator is there.
            while True:
                connection.send(OFFSET_COMMIT, COMMIT_VERSION, _commit_body(topic, keys, 0))
                answer = _answer(connection, OffsetCommitResponse, COMMIT_VERSION)
                if not answer.topics[0].partitions[0].error_code:
                    break
                wait_until_coordinated(node)
                time.sleep(0.2)
        batch_bytes = offsets_bytes(node)
        seconds, largest, offset = commit(node, topic, keys=keys, rounds=count // keys)
        size_end = offsets_bytes(node)
        node.kill()
        began = time.monotonic()
        node.start()
        start_seconds = time.monotonic() - began
        load_seconds = wait_until_loaded(node, topic, keys=keys, offset=offset)
        node.stop()
    return Commits(
        count=count // keys * keys,
        seconds=seconds,
        written_bytes=batch_bytes * (count // keys),
        size_bytes_max=largest,
        size_bytes_end=size_end,
        start_seconds=start_seconds,
        load_seconds=load_seconds,
    )


def wait_until_coordinated(node: Node) -> None:
    """Ask for the group's coordinator, as clients do; that makes the offsets topic."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": GROUP, "log_level": 0})
    try:
        consumer.committed([TopicPartition("nothing", 0)], timeout=10)
    except KafkaException:
        pass
    finally:
        consumer.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.offset_commits", description="Commits, and a restart.")
    parser.add_argument("--commits", type=int, default=10 * MEGA)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="write the section of the benchmarks' page")
    chosen = parser.parse_args()
    directory = machine.scratch_directory("commits-")
    try:
        result = measure(directory, count=chosen.commits, keys=chosen.keys)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines = [
        "| commits | keys | seconds | commits/s | written MB | offsets topic, largest MB | at the end MB"
        " | start after kill s | coordinator s |",
        "|---|---|---|---|---|---|---|---|---|",
        f"| {result.count} | {chosen.keys} | {result.seconds:.0f} | {result.count / result.seconds:.0f}"
        f" | {result.written_bytes / MEGA:.0f} | {result.size_bytes_max / MEGA:.0f}"
        f" | {result.size_bytes_end / MEGA:.0f} | {result.start_seconds:.2f} | {result.load_seconds:.2f} |",
    ]
    print("\n".join(lines))
    if chosen.write:
        write_section("offset-commits", [*stamp(machine.facts(False)), *lines])
    return 0


if __name__ == "__main__":
    sys.exit(main())
