"""Records, configurations, requests and state records that are broken in many ways: each an error of its own kind.

The inputs of the recorded answers are mutated, from seeds that are the test's names.
"""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.errors import ConnectError
from millbeck.pipeline.connect.model.dates import DateFormat
from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled
from millbeck.pipeline.connect.model.value_parser import parse_text
from millbeck.pipeline.connect.state.configs import ConfigState
from millbeck.pipeline.connect.state.offsets import OffsetState
from millbeck.pipeline.connect.state.status import StatusState
from tests.unit.pipeline.connect.plain_form import record_from
from tests.unit.pipeline.connect.rest.world import World
from tests.unit.pipeline.connect.test_kafka_answers import plugins, recorded

ROUNDS = 150
SEEDS = (1, 2, 3)
QUESTIONS = [question for question, _ in recorded()]
STORED = [bytes.fromhex(each["bytes"]) for each in QUESTIONS if each["op"] == "from_bytes" and each["bytes"]]
TRANSFORMS = [each for each in QUESTIONS if each["op"] == "transform"]
TEXTS = [
    None,
    "",
    "a",
    "a,b",
    "p",
    "p,,p",
    "5",
    "(",
    "{",
    "${",
    "${env:x}",
    "Cast$Value",
    "Filter",
    "Json",
    "RecordIsTombstone",
]
SETTINGS = [
    *("topics", "topics.regex", "tasks.max", "name", "transforms", "transforms.a.type", "transforms.a.spec"),
    *("transforms.a.predicate", "predicates", "predicates.p.type", "value.converter", "value.converter.schema.content"),
    *("errors.deadletterqueue.topic.name", "producer.override.acks", "consumer.override.x", "offsets.storage.topic"),
]
STATE = (
    b'{"properties":{"a":"b"},"tasks":1,"state":"RUNNING","worker_id":"w","generation":1,"task-count":2,"key":"YQ=="}'
)


def mutated(rng: random.Random, given: bytes) -> bytes:
    content = bytearray(given)
    for _ in range(rng.randrange(1, 4)):
        if not content:
            break
        place = rng.randrange(len(content))
        match rng.randrange(3):
            case 0:
                content[place] = rng.choice(b'{}[]",:0123456789.eE-+tfn\\ \xff')
            case 1:
                del content[place : place + rng.randrange(1, 8)]
            case _:
                start = rng.randrange(len(content))
                content[place:place] = content[start : start + rng.randrange(1, 20)]
    return bytes(content)


def text(rng: random.Random, letters: str, longest: int) -> str:
    return "".join(rng.choice(letters) for _ in range(rng.randrange(longest)))


@pytest.mark.parametrize("seed", SEEDS)
def test_records_and_headers(seed: int) -> None:
    rng = random.Random(seed)
    converters = [JsonConverter({}), JsonConverter({"schemas.enable": "false"})]
    read = 0
    for _ in range(ROUNDS):
        stored = mutated(rng, rng.choice(STORED))
        for converter in converters:
            with contextlib.suppress(ConnectError):
                found = converter.from_bytes("t", stored)
                assert converter.from_bytes("t", converter.to_bytes("t", *found)) is not None
                read += 1
        with contextlib.suppress(ConnectError):
            parse_text(text(rng, '{}[]":,\\ 01a-.TZtrue', 30))
    assert read > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_transforms(seed: int) -> None:
    rng = random.Random(seed)
    applied = 0
    for _ in range(ROUNDS):
        question, other = rng.choice(TRANSFORMS), rng.choice(TRANSFORMS)
        plugin = plugins()[question["class"]]
        settings = {
            name: given if rng.random() < 0.8 else mutated(rng, given.encode()).decode(errors="replace")
            for name, given in question["config"].items()
        }
        with contextlib.suppress(ConnectError):
            plugin.make(plugin.config_def.parse(settings)).apply(record_from(other["record"]))
            applied += 1
    assert applied > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_patterns_of_dates_and_of_texts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(ROUNDS):
        with contextlib.suppress(PatternError):
            compiled(text(rng, "()[]*+?\\pLa1$^|.<QE&-,{}", 10))
        with contextlib.suppress(ValueError):
            made = DateFormat(text(rng, "yMdHhmsSaEzZXGDFwWukK'-/: ", 12))
            written = made.format(rng.randrange(-(10**15), 10**15))
            made.parse(mutated(rng, written.encode()).decode(errors="replace"))
    assert DateFormat("yyyy").format(0) == "1970"


@pytest.mark.parametrize("seed", SEEDS)
def test_configurations_and_requests(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    world.ask("POST", "/connectors", {"name": "c", "config": {"connector.class": "FileStreamSink", "topics": "t"}})
    statuses: set[int] = set()
    for _ in range(ROUNDS):
        settings: dict[str, Any] = {"connector.class": rng.choice(["FileStreamSink", "FileStreamSource"])}
        settings |= {rng.choice(SETTINGS): rng.choice(TEXTS) for _ in range(rng.randrange(6))}
        assert validated(settings).description()["configs"]
        positions = {"partition": rng.choice([None, 5, {}, {"kafka_topic": 5, "kafka_partition": []}]), "offset": 5}
        bodies: list[Any] = [None, 5, [], settings, {"name": "c", "config": settings}, {"offsets": [positions]}]
        path = rng.choice(["", "/c", "/c/config", "/c/offsets", "/c/stop", "/c/restart", "/c/tasks/0/status"])
        method = rng.choice(["GET", "PUT", "POST", "PATCH"])
        statuses.add(world.ask(method, f"/connectors{path}", rng.choice(bodies)).status)
    assert {200, 400, 405} <= statuses
    assert 500 not in statuses


@pytest.mark.parametrize("seed", SEEDS)
def test_state_records(seed: int) -> None:
    rng = random.Random(seed)
    configs, statuses, offsets = ConfigState(), StatusState(), OffsetState()
    prefixes = [
        "connector-",
        "task-c-",
        "commit-",
        "target-state-",
        "tasks-fencing-",
        "restart-connector-",
        "session-key",
    ]
    prefixes += ["status-task-c-", "status-connector-", "status-topic-t:connector-", "logger-cluster-"]
    for offset in range(ROUNDS):
        key = rng.choice(prefixes) + rng.choice(["", "0", "c", "-1", "٣"])
        value = rng.choice([None, STATE, mutated(rng, STATE)])
        configs.replay(offset, key, value)
        statuses.replay(key, value)
        offsets.replay(mutated(rng, b'["c",{"a":1}]'), value)
    assert configs.offset == ROUNDS
