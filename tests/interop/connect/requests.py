"""Requests to Kafka Connect's REST interface, in the order in which they are sent to one worker.

A step is a request (method, path, body), or what to wait for in a connector's status. Files are relative to the
worker's directory, where ``in.txt`` has three lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Body = Any


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    body: Body = None
    is_text: bool = False
    """Whether the body is a text that is sent as it is."""


@dataclass(frozen=True, slots=True)
class Await:
    """Until the connector and its tasks have this state, and there are as many tasks."""

    connector: str
    state: str
    tasks: int = 1


Step = Request | Await

SOURCE = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": "in.txt", "topic": "lines"}
SINK = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "tasks.max": "1",
    "file": "out.txt",
    "topics": "lines",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
}


def validations() -> Iterator[Step]:
    """What is wrong with a configuration, and what it could be."""
    sink = {"name": "s", **SINK}
    source = {"name": "s", **SOURCE}
    changes: list[dict[str, str | None]] = [
        {},
        {"name": ""},
        {"name": "a\tb"},
        {"tasks.max": "0"},
        {"tasks.max": "x"},
        {"tasks.max": ""},
        {"tasks.max.enforce": "maybe"},
        {"key.converter": "Nope"},
        {"key.converter": "Json"},
        {"key.converter": "org.apache.kafka.connect.json.JsonConverter", "key.converter.schemas.enable": "maybe"},
        {"key.converter": "org.apache.kafka.connect.transforms.Filter"},
        {"header.converter": "SimpleHeaderConverter"},
        {"header.converter": "Nope"},
        {"value.converter": "JsonConverter", "value.converter.decimal.format": "hex"},
        {"config.action.reload": "sometimes"},
        {"errors.retry.timeout": "-2"},
        {"errors.retry.timeout": "long"},
        {"errors.retry.delay.max.ms": "-5"},
        {"errors.tolerance": "some"},
        {"errors.tolerance": "ALL"},
        {"errors.log.enable": "2"},
        {"transforms": "a"},
        {"transforms": "a,a", "transforms.a.type": "Filter"},
        {"transforms": "a,b", "transforms.a.type": "Filter", "transforms.b.type": "Nope"},
        {"transforms": "a", "transforms.a.type": "HasHeaderKey"},
        {"transforms": "a", "transforms.a.type": "Cast$Value"},
        {"transforms": "a", "transforms.a.type": "org.apache.kafka.connect.transforms.Cast"},
        {"transforms": "a", "transforms.a.type": "Cast$Value", "transforms.a.spec": "x:nothing"},
        {"transforms": "a", "transforms.a.type": "Cast$Value", "transforms.a.spec": "x:int8"},
        {
            "transforms": "a",
            "transforms.a.type": "RegexRouter",
            "transforms.a.regex": "a",
            "transforms.a.replacement": "b",
        },
        {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "true"},
        {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.negate": "x", "transforms.a.predicate": "p"},
        {"transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "p"},
        {"transforms": "a", "transforms.a.type": "InsertField$Value"},
        {"predicates": "p", "predicates.p.type": "RecordIsTombstone"},
        {"predicates": "p", "predicates.p.type": "TopicNameMatches", "predicates.p.pattern": ""},
        {"predicates": "p"},
        {"predicates": "p", "predicates.p.type": "Filter"},
        {"file": ""},
        {"unknown.setting": "x"},
        {"file": None},
        {"consumer.override.auto.offset.reset": "latest"},
        {"consumer.override.max.poll.records": "many"},
        {"admin.override.retries": "x"},
    ]
    sinks: list[dict[str, str | None]] = [
        {"topics": ""},
        {"topics": "a", "topics.regex": "b"},
        {"topics": "", "topics.regex": "("},
        {"topics": "", "topics.regex": "li.*"},
        {"topics": "a,a"},
        {"topics": "a,,b"},
        {"errors.deadletterqueue.topic.name": "lines"},
        {"topics": "", "topics.regex": "li.*", "errors.deadletterqueue.topic.name": "lies"},
        {"errors.deadletterqueue.topic.name": "dead", "errors.deadletterqueue.topic.replication.factor": "x"},
        {"errors.deadletterqueue.context.headers.enable": "x"},
    ]
    sources: list[dict[str, str | None]] = [
        {},
        {"topic": ""},
        {"batch.size": "x"},
        {"exactly.once.support": "never"},
        {"exactly.once.support": "required"},
        {"exactly.once.support": "requested"},
        {"transaction.boundary": "poll"},
        {"transaction.boundary": "connector"},
        {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "0"},
        {"transaction.boundary": "none"},
        {"offsets.storage.topic": ""},
        {"offsets.storage.topic": "mine"},
        {"topic.creation.groups": "a"},
        {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"},
        {"topic.creation.default.partitions": "0", "topic.creation.default.replication.factor": "-2"},
        {"topic.creation.groups": "a", "topic.creation.a.include": "x", "topic.creation.default.partitions": "1"},
        {"producer.override.acks": "2"},
        {"file": None},
    ]
    for change in [*changes, *sinks]:
        yield Request("PUT", "/connector-plugins/FileStreamSink/config/validate", {**sink, **change})
    for change in sources:
        yield Request("PUT", "/connector-plugins/FileStreamSource/config/validate", {**source, **change})
    yield Request("PUT", "/connector-plugins/FileStreamSource/config/validate", {})
    yield Request("PUT", "/connector-plugins/FileStreamSource/config/validate", {"connector.class": "FileStreamSource"})
    yield Request("PUT", "/connector-plugins/FileStreamSource/config/validate", sink)
    yield Request("PUT", "/connector-plugins/Nope/config/validate", {**sink, "connector.class": "Nope"})
    yield Request("PUT", "/connector-plugins/Nope/config/validate", sink)


def plugins() -> Iterator[Step]:
    yield Request("GET", "/")
    yield Request("GET", "/health")
    yield Request("GET", "/nothing")
    yield Request("POST", "/")
    yield Request("GET", "/connector-plugins")
    yield Request("GET", "/connector-plugins?connectorsOnly=false")
    for name in ("FileStreamSource", "FileStreamSinkConnector", "Cast$Value", "JsonConverter", "Nope"):
        yield Request("GET", f"/connector-plugins/{name}/config")
    yield Request("GET", "/connector-plugins/org.apache.kafka.connect.transforms.predicates.HasHeaderKey/config")


def creations() -> Iterator[Step]:
    """Ways in which a connector is not created, and then it is."""
    yield Request("GET", "/connectors")
    bodies: list[Any] = [
        {"name": "a"},
        {"config": SOURCE},
        {"name": "a", "config": {}},
        {"name": "", "config": SOURCE},
        {"name": "a", "config": {"connector.class": "Nope"}},
        {"name": "a", "config": {**SOURCE, "name": "b"}},
        {"name": "a", "config": {**SOURCE, "topic": ""}},
        {"name": "a", "config": {**SOURCE, "tasks.max": "-1", "errors.tolerance": "x"}},
        {"name": "a", "config": SOURCE, "initial_state": "SLEEPING"},
        {"name": "a", "config": SOURCE, "other": 1},
        {"name": "a/b\n", "config": SOURCE},
        {},
        [],
        None,
    ]
    for body in bodies:
        yield Request("POST", "/connectors", body)
    for text in ("", "{", "text", '{"name": 5, "config": {}}', '{"name":"a","config":{"topic":5}}'):
        yield Request("POST", "/connectors", text, is_text=True)
    yield Request("POST", "/connectors", {"name": "source", "config": SOURCE})
    yield Await("source", "RUNNING")
    yield Request("POST", "/connectors", {"name": "source", "config": SOURCE})
    yield Request("POST", "/connectors", {"name": "sink", "config": SINK, "initial_state": "RUNNING"})
    yield Await("sink", "RUNNING")
    yield Request("POST", "/connectors", {"name": "paused", "config": SOURCE, "initial_state": "paused"})
    yield Request("POST", "/connectors", {"name": "stopped", "config": SOURCE, "initial_state": "STOPPED"})
    yield Await("stopped", "STOPPED", 0)


def readings() -> Iterator[Step]:
    yield Request("GET", "/connectors/source")
    yield Request("GET", "/connectors/sink")
    yield Request("GET", "/connectors/stopped")
    for part in ("config", "status", "tasks", "tasks-config", "topics", "offsets", "tasks/0/status", "tasks/7/status"):
        yield Request("GET", f"/connectors/source/{part}")
        yield Request("GET", f"/connectors/nothing/{part}")
    yield Request("GET", "/connectors/sink/tasks")
    yield Request("GET", "/connectors/sink/offsets")
    yield Request("GET", "/connectors/stopped/status")
    yield Request("GET", "/connectors/stopped/offsets")
    yield Request("GET", "/connectors/nothing")
    yield Request("GET", "/connectors/source/nothing")
    yield Request("GET", "/connectors/source/tasks/x/status")


def changes() -> Iterator[Step]:
    yield Request("PUT", "/connectors/source/config", {**SOURCE, "batch.size": "10"})
    yield Await("source", "RUNNING")
    yield Request("GET", "/connectors/source/config")
    yield Request("PUT", "/connectors/source/config", {**SOURCE, "topic": ""})
    yield Request("PUT", "/connectors/source/config", {**SOURCE, "name": "other"})
    yield Request("PUT", "/connectors/new/config", {**SINK, "file": "new.txt", "topics": "nothing-yet"})
    yield Await("new", "RUNNING")
    yield Request("PATCH", "/connectors/new/config", {"errors.tolerance": "all", "value.converter": None})
    yield Await("new", "RUNNING")
    yield Request("GET", "/connectors/new/config")
    yield Request("PATCH", "/connectors/nothing/config", {"a": "b"})
    yield Request("PATCH", "/connectors/new/config", {"tasks.max": "none"})
    yield Request("PUT", "/connectors/new/pause")
    yield Await("new", "PAUSED")
    yield Request("GET", "/connectors/new/status")
    yield Request("PUT", "/connectors/new/resume")
    yield Await("new", "RUNNING")
    for verb in ("pause", "resume", "stop"):
        yield Request("PUT", f"/connectors/nothing/{verb}")
    yield Request("POST", "/connectors/nothing/restart")
    yield Request("POST", "/connectors/nothing/restart?includeTasks=true&onlyFailed=true")
    yield Request("POST", "/connectors/new/restart")
    yield Await("new", "RUNNING")
    yield Request("POST", "/connectors/new/restart?onlyFailed=true")
    yield Request("POST", "/connectors/new/restart?includeTasks=maybe")
    yield Request("POST", "/connectors/new/tasks/0/restart")
    yield Await("new", "RUNNING")
    yield Request("POST", "/connectors/new/tasks/5/restart")
    yield Request("POST", "/connectors/new/tasks/x/restart")
    yield Request("PUT", "/connectors/source/topics/reset")
    yield Request("PUT", "/connectors/nothing/topics/reset")


def offsets() -> Iterator[Step]:
    sink = [{"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]
    source = [{"partition": {"filename": "in.txt"}, "offset": {"position": 4}}]
    yield Request("PATCH", "/connectors/sink/offsets", {"offsets": sink})
    yield Request("DELETE", "/connectors/source/offsets")
    yield Request("PATCH", "/connectors/nothing/offsets", {"offsets": sink})
    yield Request("DELETE", "/connectors/nothing/offsets")
    for name in ("sink", "source"):
        yield Request("PUT", f"/connectors/{name}/stop")
        yield Await(name, "STOPPED", 0)
        yield Request("GET", f"/connectors/{name}/status")
    yield Request("PATCH", "/connectors/sink/offsets", {"offsets": []})
    yield Request("PATCH", "/connectors/sink/offsets", {})
    yield Request("PATCH", "/connectors/sink/offsets", {"offsets": None})
    bad: list[Any] = [
        {"partition": {"kafka_topic": "lines"}, "offset": {"kafka_offset": 1}},
        {"partition": {"kafka_topic": "lines", "kafka_partition": "x"}, "offset": {"kafka_offset": 1}},
        {"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": "x"}},
        {"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {}},
        {"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": -1}},
        {"partition": None, "offset": {"kafka_offset": 1}},
        {"partition": {"kafka_topic": "nothing", "kafka_partition": 0}, "offset": {"kafka_offset": 1}},
    ]
    for each in bad:
        yield Request("PATCH", "/connectors/sink/offsets", {"offsets": [each]})
    yield Request("PATCH", "/connectors/sink/offsets", {"offsets": sink})
    yield Request("GET", "/connectors/sink/offsets")
    yield Request("PATCH", "/connectors/source/offsets", {"offsets": source})
    yield Request("GET", "/connectors/source/offsets")
    for offset in ({"position": "x"}, {"position": -1}, {"other": 1}):
        yield Request("PATCH", "/connectors/source/offsets", {"offsets": [{**source[0], "offset": offset}]})
    wrong = [{"partition": {"file": "in.txt"}, "offset": {"position": 4}}]
    yield Request("PATCH", "/connectors/source/offsets", {"offsets": wrong})
    yield Request("DELETE", "/connectors/source/offsets")
    yield Request("GET", "/connectors/source/offsets")
    yield Request("DELETE", "/connectors/sink/offsets")
    yield Request("GET", "/connectors/sink/offsets")
    yield Request("PUT", "/connectors/source/resume")
    yield Await("source", "RUNNING")


def endings() -> Iterator[Step]:
    yield Request("GET", "/connectors?expand=status")
    yield Request("GET", "/connectors?expand=info&expand=status")
    yield Request("GET", "/connectors?expand=other")
    yield Request("GET", "/admin/loggers/org.apache.kafka.connect")
    yield Request("PUT", "/admin/loggers/org.apache.kafka.connect", {"level": "TRUMPET"})
    yield Request("PUT", "/admin/loggers/org.apache.kafka.connect", {})
    yield Request("PUT", "/admin/loggers/org.apache.kafka.connect?scope=galaxy", {"level": "WARN"})
    yield Request("PUT", "/admin/loggers/org.apache.kafka.connect.none", {"level": "DEBUG"})
    yield Request("POST", "/connectors/source/tasks", [{}])
    yield Request("PUT", "/connectors/source/fence")
    for name in ("new", "nothing", "stopped", "paused", "sink", "source"):
        yield Request("DELETE", f"/connectors/{name}")
    yield Request("GET", "/connectors")
    yield Request("GET", "/connectors/source/status")


def all_steps() -> list[Step]:
    makers = (plugins, validations, creations, readings, changes, offsets, endings)
    return [step for maker in makers for step in maker()]
