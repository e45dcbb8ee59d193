"""Put requests to a worker of Kafka Connect, and record its answers and what it writes to its topics.

    python -m tests.interop.connect.record_worker

Writes what the unit tests read: the answers to `requests.py`, and keys and values of the three topics. The worker runs
on a node of ours. Kafka's descriptions of settings are left out.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from millbeck.client.sync import Consumer
from millbeck.testing import broker
from tests.interop.connect.requests import Await, Request, all_steps
from tools import peers

UNIT = Path(__file__).resolve().parents[2] / "unit" / "pipeline" / "connect"
ANSWERS = UNIT / "worker_answers.txt"
TOPICS = UNIT / "worker_topics.txt"
HOST, PORT = "127.0.0.1", 28083
STATE_TOPICS = ("connect-configs", "connect-status", "connect-offsets")
START_SECONDS = 90
AWAIT_SECONDS = 30
SETTLE_SECONDS = 1.5
FULL_DEFINITIONS = 2
"""How many validations are recorded with definitions: one of a sink and one of a source are enough."""

WORKER = """
bootstrap.servers={bootstrap}
group.id=connect-cluster
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
config.storage.topic=connect-configs
offset.storage.topic=connect-offsets
status.storage.topic=connect-status
config.storage.replication.factor=1
offset.storage.replication.factor=1
status.storage.replication.factor=1
offset.flush.interval.ms=1000
listeners=http://{host}:{port}
exactly.once.source.support=enabled
"""


def ask(request: Request) -> tuple[int, str, str]:
    """Status, location and body of the answer."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=100)
    body = request.body if request.is_text else None if request.body is None else json.dumps(request.body)
    headers = {} if body is None else {"Content-Type": "application/json"}
    try:
        connection.request(request.method, quote(request.path, safe="/?=&"), body, headers)
        response = connection.getresponse()
        return response.status, response.headers.get("location") or "", response.read().decode()
    finally:
        connection.close()


def wait_until_healthy() -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            if ask(Request("GET", "/health"))[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.5)
    raise SystemExit("the worker did not start")


def wait_for(step: Await) -> None:
    deadline = time.monotonic() + AWAIT_SECONDS
    while time.monotonic() < deadline:
        status, _, body = ask(Request("GET", f"/connectors/{step.connector}/status"))
        if status == 200:
            found = json.loads(body)
            states = [found["connector"]["state"], *(task["state"] for task in found["tasks"])]
            if len(found["tasks"]) == step.tasks and set(states) == {step.state}:
                time.sleep(SETTLE_SECONDS)
                return
        time.sleep(0.2)
    raise SystemExit(f"not reached: {step}")


def short(request: Request, body: str, seen: int) -> Any:
    """The answer without Kafka's descriptions; most validations without definitions."""
    try:
        found = json.loads(body)
    except ValueError:
        return body
    if isinstance(found, dict) and "configs" in found:
        if seen >= FULL_DEFINITIONS or request.body.get("name") != "s":
            found["configs"] = [
                [each["value"]["name"], each["value"]["value"], each["value"]["errors"]] for each in found["configs"]
            ]
        return without_descriptions(found)
    return without_descriptions(found)


def without_descriptions(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_descriptions(each) for name, each in found.items() if name != "documentation"}
    return [without_descriptions(each) for each in found] if isinstance(found, list) else found


def answers() -> list[str]:
    lines: list[str] = []
    seen: dict[str, int] = {}
    for step in all_steps():
        if isinstance(step, Await):
            wait_for(step)
            continue
        status, location, body = ask(step)
        count = seen.get(step.path, 0)
        seen[step.path] = count + 1
        kept = short(step, body, FULL_DEFINITIONS if count else 0)
        lines.append(json.dumps([step.method, step.path, step.body, status, location, kept], ensure_ascii=False))
    return lines


def stored(bootstrap: str) -> list[str]:
    """Topic, key and value of every record of the state topics."""
    lines: list[str] = []
    with Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "recorder",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
    ) as consumer:
        consumer.subscribe(list(STATE_TOPICS))
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline:
            for partition, records in consumer.poll(timeout_s=1.0).items():
                for record in records:
                    found = [
                        partition.topic,
                        (record.key or b"").decode(),
                        None if record.value is None else record.value.decode(),
                    ]
                    lines.append(json.dumps(found, ensure_ascii=False))
    return lines


def main() -> int:
    with tempfile.TemporaryDirectory() as directory, broker() as node:
        folder = Path(directory)
        (folder / "in.txt").write_text("one\ntwo\nthree\n")
        (folder / "worker.properties").write_text(WORKER.format(bootstrap=node.bootstrap, host=HOST, port=PORT))
        command = ["java", "-Xmx256m", "-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        command += ["-cp", f"{peers.peer_path('kafka-connect')}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
        worker = subprocess.Popen(
            [*command, "worker.properties"],
            cwd=folder,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            wait_until_healthy()
            found = answers()
            topics = stored(node.bootstrap)
        finally:
            worker.terminate()
            worker.wait(60)
    ANSWERS.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    TOPICS.write_text("".join(f"{line}\n" for line in topics), encoding="utf-8")
    print(f"{len(found)} answers, {len(topics)} records of Kafka Connect {peers.pins()['kafka']['version']}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
