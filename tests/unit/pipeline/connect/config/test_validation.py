"""Whole configurations are judged as Kafka Connect judged them (`tests/interop/connect` recorded it)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millbeck import __version__
from millbeck.pipeline.connect.config.validation import Validation, validated
from millbeck.pipeline.connect.errors import ConfigError

RECORDED = Path(__file__).parents[1] / "worker_answers.txt"
SINK = {"name": "s", "connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}
SOURCE = {"name": "s", "connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}


def recorded() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Configurations, and what Kafka answered."""
    found = []
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        _, path, body, status, _, answer = json.loads(line)
        if path.endswith("/config/validate") and status == 200:
            found.append((body, json.loads(json.dumps(answer).replace("4.3.1", __version__))))
    return found


def short(configs: list[Any]) -> dict[str, Any]:
    """Value and errors of each setting; of a class without a certain word, and of a pattern, no more than that it is
    wrong.
    """
    rows = [
        [each["value"]["name"], each["value"]["value"], each["value"]["errors"]] if isinstance(each, dict) else each
        for each in configs
    ]
    return {name: (value, [_shortened(error) for error in errors]) for name, value, errors in rows}


def _shortened(error: str) -> str:
    for words in ("could not be found.", "Invalid regex:"):
        head, found, _ = error.partition(words)
        if found:
            return head + found
    return error


def is_stricter(body: dict[str, Any]) -> bool:
    """Whether Kafka accepts what is refused here: a predicate that is not defined, a null, a client's wrong setting."""
    is_undefined = "transforms.a.predicate" in body and "predicates" not in body
    overrides = {"producer.override.acks": "2", "admin.override.retries": "x"}
    return is_undefined or None in body.values() or bool(overrides.items() & body.items())


def is_other_name(body: dict[str, Any]) -> bool:
    """Whether a class has a name that Kafka does not know: the last part of a transform of keys or values, and the one
    of its two classes together.
    """
    return "Cast" in body.get("transforms.a.type", "") or "$" in body.get("transforms.a.type", "")


CASES = recorded()


def test_most_configurations_are_judged_alike() -> None:
    same = [body for body, _ in CASES if not is_stricter(body) and not is_other_name(body)]
    assert len(same) >= 60
    assert len(CASES) - len(same) <= 12


@pytest.mark.parametrize(
    ("body", "theirs"), [case for case in CASES if not is_stricter(case[0]) and not is_other_name(case[0])]
)
def test_a_configuration_is_judged_as_kafka_does(body: dict[str, Any], theirs: dict[str, Any]) -> None:
    ours = validated(body).description()
    assert short(ours["configs"]) == short(theirs["configs"])
    assert ours["error_count"] == theirs["error_count"]
    assert sorted(ours["groups"]) == sorted(theirs["groups"])
    assert ours["name"] == theirs["name"]


def test_settings_are_declared_as_in_kafka() -> None:
    full = [(body, theirs) for body, theirs in CASES if isinstance(theirs["configs"][0], dict)]
    assert len(full) >= 2
    for body, theirs in full:
        ours = {each["value"]["name"]: each for each in validated(body).description()["configs"]}
        for each in theirs["configs"]:
            found = ours[each["value"]["name"]]
            assert {**found["definition"], "documentation": ""} == {**each["definition"], "documentation": ""}
            # Classes of others than Kafka are ours alone.
            kafkas = [name for name in found["value"]["recommended_values"] if name.startswith("org.apache.kafka.")]
            recommended = kafkas or found["value"]["recommended_values"]
            assert {**found["value"], "recommended_values": recommended} == each["value"]


@pytest.mark.parametrize(("body", "theirs"), [case for case in CASES if is_stricter(case[0])])
def test_what_kafka_fails_on_later_is_refused_at_its_setting(body: dict[str, Any], theirs: dict[str, Any]) -> None:
    before = {name: errors for name, (_, errors) in short(theirs["configs"]).items()}
    new = {
        entry.value.name for entry in validated(body).entries if entry.value.errors and not before.get(entry.value.name)
    }
    assert len(new) == 1
    (name,) = new
    assert name in body


def errors_of(found: Validation) -> dict[str, list[str]]:
    return {entry.value.name: entry.value.errors for entry in found.entries if entry.value.errors}


def test_an_undefined_predicate_is_named_with_what_to_set() -> None:
    settings = {**SINK, "transforms": "a", "transforms.a.type": "Filter", "transforms.a.predicate": "isSoft"}
    assert errors_of(validated(settings)) == {
        "transforms.a.predicate": [
            "Invalid value isSoft for configuration transforms.a.predicate: no such predicate: set predicates=isSoft"
            " and predicates.isSoft.type"
        ]
    }


def test_settings_that_contradict_each_other_are_found() -> None:
    settings = {**SINK, "transforms": "a", "transforms.a.type": "TimestampConverter$Value"}
    settings |= {"transforms.a.target.type": "string"}
    assert errors_of(validated(settings)) == {
        "transforms.a.type": ["TimestampConverter requires format option to be specified when using string timestamps"]
    }
    wrong = {**SINK, "value.converter": "JsonConverter", "value.converter.schema.content": "{"}
    assert "schema.content" in errors_of(validated(wrong))["value.converter"][0]


def test_exactly_once_is_refused_to_who_cannot() -> None:
    settings = {**SOURCE, "transaction.boundary": "connector"}
    assert list(errors_of(validated(settings))) == ["transaction.boundary"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "contains no connector type: set connector.class"),
        ("FileStreamSinc", "did you mean FileStreamSink"),
        ("io.example.Other", "available connectors are: org.apache.kafka.connect.file.FileStreamSinkConnector"),
    ],
)
def test_without_a_known_class_there_is_nothing_to_check(name: str | None, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validated({"name": "s"} if name is None else {"name": "s", "connector.class": name})
    assert message in str(caught.value)


def test_the_configuration_is_not_shown_when_the_class_is_missing() -> None:
    with pytest.raises(ConfigError) as caught:
        validated({"name": "s", "connection.password": "secret"})
    assert "secret" not in str(caught.value)


def test_advice_is_given_on_what_would_run() -> None:
    chain = {f"transforms.{alias}.type": "Filter" for alias in "abcd"}
    settings = {**SINK, "transforms": "a,b,c,d", **chain, "predicates": "p", "predicates.p.type": "RecordIsTombstone"}
    found = validated({**settings, "tasks.maximum": "5", "consumer.override.max.poll.records": "5"})
    assert found.errors == []
    assert found.advice == [
        "transforms: 4 transforms in a row are hard to follow: a topology says it more clearly",
        "predicates.p: no transform uses it",
        "tasks.maximum: no such setting; it has no effect",
    ]


def test_values_of_config_providers_are_known_to_the_worker_alone() -> None:
    settings = {
        **SINK,
        "topics": "${env:TOPICS}",
        "tasks.max": "${env:TASKS}",
        "key.converter": "${file:/run/c.properties:converter}",
        "value.converter": "JsonConverter",
        "value.converter.decimal.format": "${env:FORMAT}",
        "transforms": "a",
        "transforms.a.type": "RegexRouter",
        "transforms.a.regex": "${env:REGEX}",
        "transforms.a.replacement": "x",
        "errors.deadletterqueue.topic.name": "${env:DEAD}",
        "consumer.override.max.poll.records": "${env:RECORDS}",
    }
    found = validated(settings)
    assert errors_of(found) == {}
    assert found.entry("tasks.max").value.value == "${env:TASKS}"
    router = {**SINK, "transforms": "a", "transforms.a.type": "TimestampRouter"}
    assert errors_of(validated({**router, "transforms.a.topic.format": "${topic}-${timestamp}"})) == {}
    assert list(errors_of(validated({**settings, "tasks.max": "x${env:TASKS", "errors.tolerance": "x"}))) == [
        "tasks.max",
        "errors.tolerance",
    ]


@pytest.mark.parametrize(
    "name", ["transforms", "predicates", "transforms.a.renames", "topics", "topics.regex", "errors.tolerance"]
)
def test_a_null_is_an_error_at_its_setting(name: str) -> None:
    settings: dict[str, str | None] = {**SINK, "transforms": "a", "transforms.a.type": "ReplaceField$Value"}
    assert (
        "Null value can not be supplied as the configuration value."
        in errors_of(validated({**settings, name: None}))[name]
    )
