"""The settings of the generator, under the names of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.pipeline.connect.config.checks import at_least, non_empty_text
from millbeck.pipeline.connect.config.definitions import INT, LONG, STRING, Check, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, SettingProblem

QUICKSTARTS: Final = ("orders", "users", "pageviews", "clickstream")


def _known(value: str | None) -> str | None:
    return None if not value or value.lower() in QUICKSTARTS else f"there are {', '.join(QUICKSTARTS)}"


def _problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    if bool(values["quickstart"]) == bool(values["schema.string"]):
        yield SettingProblem("quickstart", f"set one of quickstart ({', '.join(QUICKSTARTS)}) and schema.string")


DATAGEN_SOURCE: Final = ConnectorClass(
    name="io.confluent.kafka.connect.datagen.DatagenConnector",
    kind=ConnectorKind.SOURCE,
    doc="Records of chance, of an Avro schema or a well-known form.",
    implementation="millbeck.pipeline.connect.connectors.datagen.source:DatagenSource",
    problems=_problems,
    config_def=ConfigDef(
        ConfigKey(
            name="kafka.topic",
            kind=STRING,
            check=non_empty_text(),
            importance=Importance.HIGH,
            doc="The topic to write to.",
        ),
        ConfigKey(
            name="quickstart",
            kind=STRING,
            default="",
            check=Check(_known, f"[{', '.join(QUICKSTARTS)}]"),
            doc="A well-known form of records.",
        ),
        ConfigKey(
            name="schema.string",
            kind=STRING,
            default="",
            doc="The Avro schema of values, as JSON; arg.properties of fields may have range (min, max), options, "
            "regex of plain character classes, length, and iteration (start, step).",
        ),
        ConfigKey(
            name="schema.keyfield",
            kind=STRING,
            default="",
            doc="The field that is the key as well.",
        ),
        ConfigKey(
            name="max.interval",
            kind=LONG,
            default=500,
            check=at_least(0),
            importance=Importance.HIGH,
            doc="The longest time between two records of a task, in milliseconds; on average it is half of it.",
        ),
        ConfigKey(
            name="iterations",
            kind=INT,
            default=-1,
            importance=Importance.HIGH,
            doc="How many records each task writes; -1: without end.",
        ),
        ConfigKey(
            name="random.seed",
            kind=LONG,
            default=0,
            importance=Importance.LOW,
            doc="The seed: record number N of a task is the same in every run.",
        ),
    ),
)
