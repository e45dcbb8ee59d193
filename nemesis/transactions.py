"""Transactions under harm: what the transactors did, and whether every record came through exactly once.

Each partition of the target must hold, for readers of what is committed, what the transactors make of that partition of
the source, in its order: nothing missing, nothing twice, nothing of what was aborted. Who read along must have seen the
same. No transaction may be left hanging: the last stable offset reaches the end.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from bench.systems.apache_kafka import java_command
from nemesis.judgement import TransactionVerdict, entries
from nemesis.run import PARTITIONS, TOPIC, Clients, Run, RunFailed
from nemesis.transactor import GROUP, transformed

TARGET = "results"
TRANSACTORS = 3
RECORDS_MAX = 20
PATIENCE_S = 300.0
SOURCE_FILE = Path(__file__).parent / "java" / "Transactor.java"


class Transactions:
    """The transactors of a run, and those who read what they write."""

    def __init__(self, run: Run, clients: Clients, kind: str) -> None:
        self._run = run
        self._clients = clients
        self._kind = kind
        self._names: list[str] = []

    def start(self) -> None:
        addresses, options = self._run.cluster.bootstrap, {"records_max": RECORDS_MAX}
        self._names = ["java"] if self._kind == "java" else [f"t{number}" for number in range(TRANSACTORS)]
        for name in self._names:
            command = [sys.executable, "-m", "nemesis.transactor"]
            if self._kind == "java":
                command = java_transactor()
            where = [addresses, TOPIC, TARGET, str(self._clients.notes(name))]
            self._clients.launch(name, [*command, *where, json.dumps({"name": name, **options})])
        self._clients.start("consume", "results-tail", topic=TARGET, partitions=PARTITIONS, only_committed=True)

    def finish(self) -> None:
        """When all of the source is through: end the transactors and read what they have left."""
        self._await_done()
        for name in self._names:
            self._clients.end(name)
        self._clients.start("read-committed", "results", topic=TARGET, partitions=PARTITIONS, patience_s=PATIENCE_S / 2)
        self._clients.end("results")
        self._clients.end("results-tail")

    def _await_done(self) -> None:
        consumer = Consumer(
            {"bootstrap.servers": self._run.cluster.bootstrap, "group.id": GROUP, "isolation.level": "read_committed"}
        )
        places = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
        deadline_s = time.monotonic() + PATIENCE_S
        missing: object = None
        while time.monotonic() < deadline_s:
            try:
                ends = {place.partition: consumer.get_watermark_offsets(place, 10)[1] for place in places}
                done = {place.partition: max(place.offset, 0) for place in consumer.committed(places, 10)}
            except KafkaException as error:
                missing = error
                continue
            if ends == done:
                consumer.close()
                return
            missing = {index: (done[index], end) for index, end in ends.items() if done[index] != end}
            self._run.sleep(0.5)
        raise RunFailed(f"the transactors did not come to the end in {PATIENCE_S:.0f} s: {missing}")

    def judge(self, source: Path) -> TransactionVerdict:
        return judge_transactions(
            [self._clients.notes(name) for name in self._names],
            source,
            self._clients.notes("results"),
            tail=self._clients.notes("results-tail"),
        )


def java_transactor() -> list[str]:
    """Run from its source. A JVM of its own for each transactor would be more than a small machine can bear."""
    return java_command(str(SOURCE_FILE), heap_mib=256, log_level="error")


def judge_transactions(transactors: Iterable[Path], source: Path, target: Path, *, tail: Path) -> TransactionVerdict:
    counts = {"committed": 0, "aborted": 0}
    anomalies = []
    for path in transactors:
        has_ended = False
        for _, kind, *_ in entries(path):
            if kind in counts:
                counts[kind] += 1
            has_ended = has_ended or kind == "end"
        if not has_ended:
            anomalies.append(f"{path.stem} did not come to its end")
    wanted = {
        partition: [transformed(value.encode()).decode() for value in values.values()]
        for partition, values in _read(source).items()
    }
    found = _read(target)
    for partition in sorted(wanted.keys() | found.keys()):
        anomalies += _compare(partition, wanted.get(partition, []), list(found.get(partition, {}).values()))
    anomalies += _hanging(target)
    anomalies += _seen_otherwise(_read(tail), found)
    digest = hashlib.sha256()
    for partition in sorted(found):
        for value in found[partition].values():
            digest.update(f"{partition} {value}\n".encode())
    return TransactionVerdict(
        committed=counts["committed"],
        aborted=counts["aborted"],
        records=sum(len(values) for values in found.values()),
        checksum=digest.hexdigest()[:16],
        anomalies=anomalies,
    )


def _read(path: Path) -> dict[int, dict[int, str]]:
    """The values by their partitions and offsets, in order."""
    found: dict[int, dict[int, str]] = {}
    for _, kind, *rest in entries(path):
        if kind == "read":
            partition, offset, value = rest
            found.setdefault(partition, {})[offset] = value
    return {partition: dict(sorted(values.items())) for partition, values in found.items()}


def _compare(partition: int, wanted: list[str], found: list[str]) -> list[str]:
    if wanted == found:
        return []
    once, known = dict.fromkeys(found), dict.fromkeys(wanted)
    missing = [value for value in wanted if value not in once]
    unknown = [value for value in once if value not in known]
    anomalies = []
    if missing:
        anomalies.append(f"partition {partition} lacks {len(missing)} of {len(wanted)} records, as {missing[0]}")
    if len(once) < len(found):
        seen: set[str] = set()
        twice = [value for value in found if value in seen or seen.add(value)]  # type: ignore[func-returns-value]
        anomalies.append(f"partition {partition} has {len(twice)} records more than once, as {twice[0]}")
    if unknown:
        anomalies.append(f"partition {partition} has {len(unknown)} records of nobody, as {unknown[0]}")
    return anomalies or [f"partition {partition} is not in the order of the source"]


def _hanging(target: Path) -> list[str]:
    return [
        f"partition {index} is stable up to {stable} only, and ends at {end}: a transaction hangs"
        for _, kind, *rest in entries(target)
        if kind == "whole"
        for index, stable, end in [rest]
        if stable < end
    ]


def _seen_otherwise(tail: Mapping[int, Mapping[int, str]], found: Mapping[int, Mapping[int, str]]) -> list[str]:
    return [
        f"who read along saw {value} at {partition}:{offset}, where there is {found.get(partition, {}).get(offset)}"
        for partition, values in tail.items()
        for offset, value in values.items()
        if found.get(partition, {}).get(offset) != value
    ][:5]
