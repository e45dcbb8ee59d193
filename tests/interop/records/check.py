"""Compare every metadata record in every version with Kafka's own classes, byte for byte and in both directions.

    python -m tests.interop.records.check             compare
    python -m tests.interop.records.check --golden    also rewrite the vectors that the unit tests use

Fails when Kafka's artifacts are not there; `python -m tools.peers install` fetches them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from millbeck.metadata.records import RECORD_TYPES
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.schema import schema_of
from millbeck.wire.varint import unsigned_varint
from tests.interop.records.samples import as_json, sample
from tools import peers

SEED = 20
SAMPLES = 60
GOLDEN_SAMPLES = 2
GOLDEN_SIZE_BYTES_MAX = 400
GOLDEN = Path(__file__).resolve().parents[2] / "unit" / "metadata" / "kafka_records.txt"


def oracle(*arguments: str, lines: list[str]) -> list[str]:
    """What the Java program answers to these lines."""
    command = ["java", "-cp", f"{peers.peer_path('kafka')}/*", str(Path(__file__).with_name("RecordOracle.java"))]
    done = subprocess.run(
        [*command, *arguments], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=300
    )
    if done.returncode != 0:
        raise SystemExit(f"the oracle failed:\n{done.stderr}")
    return done.stdout.splitlines()


def framed(record: Any, version: int) -> bytes:
    schema = schema_of(type(record))
    head = b"".join(unsigned_varint(number) for number in (1, schema.api_key or 0, version))
    return head + encoder(type(record), version)(record)


def versions_that_differ() -> list[str]:
    ours = {(number, *schema_of(cls).versions) for number, cls in RECORD_TYPES.items()}
    known = oracle("types", lines=[])
    theirs = {tuple(int(word) for word in line.split()) for line in known}
    return [f"type {row[0]}: only one side has versions {row[1]} to {row[2]}" for row in sorted(ours ^ theirs)]


def compare(cases: list[tuple[Any, int]]) -> list[str]:
    """What is different between Kafka and us."""
    lines = []
    for record, version in cases:
        body = json.dumps(as_json(record, version))
        lines.append(f"{schema_of(type(record)).api_key} {version} {framed(record, version).hex()} {body}")
    problems = []
    for (record, version), answer in zip(cases, oracle(lines=lines), strict=True):
        ours = framed(record, version)
        name = f"{type(record).__name__} v{version}"
        if answer != ours.hex():
            problems.append(f"{name}: ours {ours.hex()}, Kafka's {answer}, of {record!r}")
            continue
        payload = ours[3:]  # frame version, type and version are one byte each
        decoded, end = decoder(type(record), version)(payload)
        if decoded != record or end != len(payload):
            problems.append(f"{name}: Kafka's bytes become {decoded!r} and not {record!r}")
    return problems


def main() -> int:
    rng = random.Random(SEED)
    cases: list[tuple[Any, int]] = []
    golden: list[tuple[Any, int]] = []
    for cls in RECORD_TYPES.values():
        low, high = schema_of(cls).versions
        for version in range(low, high + 1):
            drawn = [(cls(), version), *((sample(cls, version, rng), version) for _ in range(SAMPLES))]
            cases += drawn
            short = [case for case in drawn if len(framed(*case)) < GOLDEN_SIZE_BYTES_MAX]
            golden += short[: 1 + GOLDEN_SAMPLES]
    problems = versions_that_differ() + compare(cases)
    for problem in problems:
        print(problem)
    if problems:
        return 1
    if "--golden" in sys.argv[1:]:
        vectors = [f"{version} {framed(record, version).hex()} {record!r}\n" for record, version in golden]
        GOLDEN.write_text("".join(vectors), encoding="utf-8")
    print(f"{len(cases)} records of {len(RECORD_TYPES)} types agree with Kafka {peers.pins()['kafka']['version']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
