"""The registry's API under generated requests (schemathesis, on the registry's own OpenAPI document), and under schemas
that are made to cost time or memory while others ask for schemas."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.testing import broker, registry
from tools import peers

CALLS = 20_000
EXAMPLES = 500
"""Generated requests of each operation in each phase."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
SECONDS_MAX = 1.0
OTHERS_P99_MS = 50.0
ROUNDS = 12
MEMORY_MIB = 40
"""What allocators may keep of what hostile requests needed for a moment."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with broker() as running, registry(running.bootstrap) as address:
        yield address


@pytest.mark.timeout(1800)
def test_generated_requests_get_declared_answers(url: str) -> None:
    place = peers.install("schemathesis")
    program = "from schemathesis.cli import schemathesis; schemathesis()"
    options = [
        "--checks",
        CHECKS,
        "--max-examples",
        str(EXAMPLES),
        "--seed",
        "1",
        "--no-color",
        "--continue-on-failure",
    ]
    done = subprocess.run(
        [sys.executable, "-c", program, "run", f"{url}/openapi.json", *options, "--suppress-health-check", "all"],
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=1700,
    )
    print(done.stdout[-3000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    counted = re.findall(r"(\d+) generated", done.stdout)
    assert int(counted[-1]) >= CALLS


def _deep(depth: int) -> str:
    return '{"type":"array","items":' * depth + '"int"' + "}" * depth


def _laughs(levels: int) -> str:
    """Each message has ten fields of the one before it, and options that repeat them."""
    messages = ["message M0 { string a = 1; }"]
    for level in range(1, levels):
        fields = " ".join(f"M{level - 1} f{number} = {number};" for number in range(1, 200))
        messages.append(f"message M{level} {{ {fields} }}")
    return 'syntax = "proto3";\n' + "\n".join(messages)


def _doubling(levels: int) -> dict[str, Any]:
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for level in range(1, levels):
        reference = {"$ref": f"#/definitions/d{level - 1}"}
        definitions[f"d{level}"] = {"allOf": [reference, reference]}
    return {"definitions": definitions, "$ref": f"#/definitions/d{levels - 1}"}


HOSTILE: dict[str, tuple[str, str]] = {
    "a name of a megabyte": ("AVRO", json.dumps({"type": "fixed", "name": "N" * 1_000_000, "size": 1})),
    "ten thousand levels": ("AVRO", _deep(10_000)),
    "a hundred thousand levels": ("AVRO", "[" * 100_000),
    "too many fields": (
        "AVRO",
        json.dumps(
            {"type": "record", "name": "R", "fields": [{"name": f"f{n}", "type": "int"} for n in range(200_000)]}
        ),
    ),
    "ten thousand levels of JSON": ("JSON", '{"not":' * 10_000 + "{}" + "}" * 10_000),
    "a reference to the network": ("JSON", '{"$ref":"http://127.0.0.1:1/schema.json"}'),
    "a circle": ("JSON", '{"$ref":"#"}'),
    "a circle of two": (
        "JSON",
        '{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}},"$ref":"#/definitions/a"}',
    ),
    "a pattern that explodes": (
        "JSON",
        '{"type":"string","pattern":"^(a+)+$","default":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}',
    ),
    "a pattern that is nested": ("JSON", json.dumps({"pattern": "(" * 50_000 + ")" * 50_000})),
    "doubling": ("JSON", json.dumps(_doubling(60))),
    "laughing messages": ("PROTOBUF", _laughs(200)),
    "ten thousand messages in each other": ("PROTOBUF", 'syntax="proto3";' + "message M {" * 10_000 + "}" * 10_000),
    "comments in comments": ("PROTOBUF", 'syntax="proto3";' + "/*" * 100_000),
    "a string without end": ("PROTOBUF", 'syntax="proto3"; import "' + "a" * 900_000),
    "an enum of a hundred thousand": (
        "PROTOBUF",
        'syntax="proto3"; enum E {' + "".join(f"V{n}={n};" for n in range(60_000)) + "}",
    ),
}
MAY_PASS = ("a circle", "a pattern that explodes", "doubling", "laughing messages", "an enum of a hundred thousand")
"""Valid schemas as large as the limits allow, which may be accepted, and for which protoc may take longer."""


def ask(url: str, path: str, body: Any = None) -> tuple[int, float]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
    before = time.monotonic()
    try:
        with urllib.request.urlopen(urllib.request.Request(url + path, data, headers), timeout=60) as answer:
            answer.read()
            return answer.status, time.monotonic() - before
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, time.monotonic() - before


def rss_mib(url: str) -> float:
    """The memory of the process that listens there."""
    port = int(url.rpartition(":")[2])
    wanted = f"{port:04X}"
    inodes = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{wanted}") and line.split()[3] == "0A"
    }
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found = any(os.readlink(each).strip("socket:[]") in inodes for each in (process / "fd").iterdir())
            if found:
                status = (process / "status").read_text()
                return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024
        except OSError:
            continue
    raise AssertionError(f"nobody listens on {port}")


@pytest.mark.timeout(600)
def test_hostile_schemas_cost_little_and_hold_up_nobody(url: str) -> None:
    assert ask(url, "/subjects/steady-value/versions", {"schema": '"string"'})[0] == 200
    slow: list[str] = []
    others: list[float] = []
    over = threading.Event()

    def steady() -> None:
        while not over.wait(0.02):
            status, seconds = ask(url, "/schemas/ids/1")
            assert status == 200
            others.append(seconds * 1000)

    def run(check: Callable[[str, int, float], None]) -> None:
        for name, (kind, text) in HOSTILE.items():
            status, seconds = ask(url, "/subjects/hostile/versions", {"schemaType": kind, "schema": text})
            check(name, status, seconds)

    def check(name: str, status: int, seconds: float) -> None:
        assert status in (413, 422) or (name in MAY_PASS and status in (200, 409)), (name, status)
        if seconds > SECONDS_MAX * (3 if name in MAY_PASS else 1):
            slow.append(f"{name}: {seconds:.1f} s")

    run(check)
    before = rss_mib(url)
    watching = threading.Thread(target=steady)
    watching.start()
    try:
        for _ in range(ROUNDS):
            run(check)
    finally:
        over.set()
        watching.join()
    after = rss_mib(url)
    p99 = sorted(others)[int(len(others) * 0.99)]
    print(
        f"others: {len(others)} requests, p99 {p99:.1f} ms; memory {before:.0f} -> {after:.0f} MiB; slow: {slow[:10]}"
    )
    assert after - before < MEMORY_MIB
    assert not slow
    assert p99 <= OTHERS_P99_MS
