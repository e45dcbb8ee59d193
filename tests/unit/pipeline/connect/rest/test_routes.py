"""Requests are answered as Kafka Connect answered the same requests in the same order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millbeck import __version__
from millbeck.pipeline.connect.rest.answers import NO_BODY, Decision, GroupOffset, Request
from millbeck.pipeline.connect.state import configs, status
from millbeck.pipeline.connect.state.configs import StateRecord, TaskId
from millbeck.pipeline.connect.state.status import State, Status
from tests.unit.pipeline.connect.rest.world import WORKER, World

RECORDED = Path(__file__).parents[1] / "worker_answers.txt"


def recorded() -> list[tuple[str, str, Any, int, str, Any]]:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line.replace("4.3.1", __version__))) for line in lines]


def without_descriptions(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: without_descriptions(each) for name, each in found.items() if name != "documentation"}
    return [without_descriptions(each) for each in found] if isinstance(found, list) else found


def is_kafkas(plugin: dict[str, Any]) -> bool:
    """Whether a class is Kafka's own; a setting has no class."""
    return str(plugin.get("class", "org.apache.kafka")).startswith("org.apache.kafka")


def comparable(path: str, body: Any) -> Any:
    """Lists of classes and of settings have no order; a version and a cluster's id are one's own."""
    if path == "/":
        return sorted(body)
    if path.startswith("/connector-plugins") and isinstance(body, list):
        kafkas = [each for each in body if not isinstance(each, dict) or is_kafkas(each)]
        return sorted(json.dumps(each, sort_keys=True) for each in without_descriptions(kafkas))
    return body


WORLD = {
    "GET /connectors/sink/offsets": "how far the sink was, and an offset of a topic that is not there",
    "PATCH /connectors/sink/offsets": "brokers refuse offsets of a topic that is not there",
    "GET /connectors/source/status": "the status was read before the deletion had reached it",
}
"""Where the answer depends on brokers and on time."""

OURS = {
    "GET /connector-plugins/Cast$Value/config": "a name that Kafka does not know",
    "POST /connectors": "messages without the whole configuration, which may have passwords, and with our classes",
    "GET /connector-plugins": "connectors that are not Kafka's",
    "GET /connector-plugins?connectorsOnly=false": "connectors that are not Kafka's",
}

NOT_COMPARED = "/admin/loggers"
"""Loggers are Python's here."""


def test_requests_are_answered_as_kafka_does() -> None:
    world = World()
    differences: list[str] = []
    compared = 0
    for method, path, body, status_code, location, theirs in recorded():
        if path.endswith("/validate") or isinstance(body, str) or path.startswith(NOT_COMPARED):
            continue
        if (method, path) == ("GET", "/connectors/source"):
            world.move_data()
        decision = world.ask(method, path, body)
        ours = "" if decision.body is NO_BODY else decision.body
        compared += 1
        if status_code == 500:
            # What Kafka takes for a failure of its own is a bad request here.
            is_checked_by_brokers = f"{method} {path}" in WORLD and decision.status == 200
            assert decision.status == 400 or is_checked_by_brokers, (method, path, body)
            continue
        if location:
            assert location == f"http://127.0.0.1:28083{decision.location}"
        is_same = comparable(path, ours) == comparable(path, theirs)
        if decision.status != status_code or not is_same:
            differences.append(f"{method} {path}")
    assert compared >= 120
    assert set(differences) <= {*WORLD, *OURS}, differences
    assert len(differences) <= 11, differences


def test_a_request_that_is_no_json_object_is_refused() -> None:
    world = World()
    world.ask("POST", "/connectors", {"name": "c", "config": SINK})
    for method, path in (
        ("POST", "/connectors"),
        ("PUT", "/connectors/c/config"),
        ("PATCH", "/connectors/c/config"),
        ("PATCH", "/connectors/c/offsets"),
        ("PUT", "/connector-plugins/FileStreamSink/config/validate"),
    ):
        bodies: list[Any] = [None, [], "text", 5, {"offsets": 5, "config": 5, "connector.class": ["x"]}]
        for body in bodies:
            decision = world.ask(method, path, body)
            assert decision.status == 400, (method, path, body)
            assert decision.body["error_code"] == 400


SINK = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}


def created(settings: dict[str, str], **more: Any) -> World:
    world = World()
    assert world.ask("POST", "/connectors", {"name": "c", "config": settings, **more}).status == 201
    return world


@pytest.mark.parametrize(
    ("word", "state"), [("RUNNING", State.RUNNING), ("PAUSED", State.PAUSED), ("stopped", State.STOPPED)]
)
def test_a_connector_begins_in_the_state_that_is_asked_for(word: str, state: State) -> None:
    assert (
        created(SOURCE, initial_state=word).ask("GET", "/connectors/c/status").body["connector"]["state"] == state.value
    )


def test_names_may_have_any_letters() -> None:
    world = World()
    name = "a/b c%ü?"
    world.ask("POST", "/connectors", {"name": name, "config": SINK})
    assert world.ask("GET", "/connectors/a%2Fb%20c%25%C3%BC%3F").body["name"] == name
    assert world.ask("DELETE", "/connectors/a%2Fb%20c%25%C3%BC%3F").status == 204
    assert world.ask("GET", "/connectors").body == []


def test_a_failed_task_shows_why_and_is_restarted_alone() -> None:
    world = created(SOURCE)
    failed = Status(state=State.FAILED, worker_id=WORKER, generation=1, trace="java.io.IOException: disk full")
    world.cluster.statuses.replay(*status.task_record(TaskId("c", 0), failed))
    shown = world.ask("GET", "/connectors/c/tasks/0/status").body
    assert shown == {"id": 0, "state": "FAILED", "worker_id": WORKER, "trace": "java.io.IOException: disk full"}
    decision = world.routes.respond(
        Request(
            method="POST",
            path="/connectors/c/restart",
            query={"includeTasks": ("true",), "onlyFailed": ("true",)},
        )
    )
    assert isinstance(decision, Decision)
    assert decision.body["connector"]["state"] == "RUNNING"
    assert decision.body["tasks"][0]["state"] == "RESTARTING"
    assert decision.configs == (StateRecord("restart-connector-c", b'{"include-tasks":true,"only-failed":true}'),)


def test_offsets_of_a_sink_are_those_of_its_group() -> None:
    world = created({**SINK, "consumer.override.group.id": "mine"}, initial_state="STOPPED")
    world.groups["mine"] = {("lines", 1): 7, ("lines", 0): 3}
    offsets = world.ask("GET", "/connectors/c/offsets").body["offsets"]
    assert [each["offset"]["kafka_offset"] for each in offsets] == [3, 7]
    change = {"partition": {"kafka_topic": "lines", "kafka_partition": "1"}, "offset": {"kafka_offset": "9"}}
    assert world.ask("PATCH", "/connectors/c/offsets", {"offsets": [change]}).group_offsets == (
        GroupOffset("lines", 1, 9),
    )
    assert world.groups["mine"] == {("lines", 1): 9, ("lines", 0): 3}
    reset = world.ask("DELETE", "/connectors/c/offsets")
    assert (reset.group, reset.group_offsets, world.groups["mine"]) == ("mine", (), {})


@pytest.mark.parametrize("offset", [-1, 1 << 63, 1.5, True, "1e3", "٣", None, "9" * 100])
def test_an_offset_that_is_none_is_refused(offset: Any) -> None:
    world = created(SINK, initial_state="STOPPED")
    change = {"partition": {"kafka_topic": "lines", "kafka_partition": 0}, "offset": {"kafka_offset": offset}}
    decision = world.ask("PATCH", "/connectors/c/offsets", {"offsets": [change]})
    assert decision.status == 400
    assert "need to be integers" in decision.body["message"]


def test_a_class_that_is_not_here_is_told_and_its_records_stay() -> None:
    world = World()
    for record in configs.connector_records("java", {"connector.class": "io.example.Java"}):
        world.cluster.configs.replay(0, *record)
    assert world.ask("GET", "/connectors/java").body["type"] == "unknown"
    assert world.ask("GET", "/connectors/java/config").body == {"connector.class": "io.example.Java"}
    decision = world.ask("GET", "/connectors/java/offsets")
    assert (decision.status, "io.example.Java" in decision.body["message"]) == (500, True)


def test_a_wrong_configuration_is_refused_with_every_error() -> None:
    world = World()
    body = {"name": "c", "config": {**SINK, "tasks.max": "0", "errors.tolerance": "x", "password": "secret"}}
    decision = world.ask("POST", "/connectors", body)
    assert decision.status == 400
    assert "contains the following 2 error(s):" in decision.body["message"]
    assert "secret" not in str(decision.body)
    assert decision.configs == ()


def test_unknown_paths_and_methods() -> None:
    world = World()
    assert world.ask("GET", "/nothing").body == {"error_code": 404, "message": "HTTP 404 Not Found"}
    assert world.ask("DELETE", "/connectors").status == 405
    assert world.ask("GET", "/connectors/c/tasks/99999999999/status").status == 404
    assert world.ask("GET", "/connectors/").status == 200
