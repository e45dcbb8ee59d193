"""The settings of the HTTP sink, under the names of Confluent's where it has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from millbeck.pipeline.connect.config.checks import at_least, non_empty_text, one_of_ignoring_case
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    INT,
    LIST,
    PASSWORD,
    STRING,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, Delivery, SettingProblem

_HIGH, _LOW = Importance.HIGH, Importance.LOW


def status_ranges(texts: Iterable[str]) -> list[range]:
    """``400-499`` and ``503`` as ranges; raises ValueError."""
    found = []
    for text in texts:
        first, dash, last = text.partition("-")
        if not first.isdigit() or (dash and last and not last.isdigit()):
            raise ValueError(f"{text} is no status code or range, such as 503 or 500-599")
        found.append(range(int(first), int(last or (599 if dash else first)) + 1))
    return found


def header_pairs(text: str, separator: str) -> list[tuple[str, str]]:
    """``Name:value`` pairs; raises ValueError."""
    found = []
    for part in text.split(separator):
        name, colon, value = part.partition(":")
        if part.strip() and (not colon or not name.strip() or any(end in part for end in "\r\n")):
            raise ValueError("expected Name:value")
        if part.strip():
            found.append((name.strip(), value.strip()))
    return found


def _problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    url = urlsplit(values["http.api.url"])
    if url.scheme not in ("http", "https") or not url.hostname:
        yield SettingProblem("http.api.url", "expected an address such as https://orders.example/events")
    for setting in ("retry.on.status.codes", "reject.on.status.codes"):
        try:
            status_ranges(values[setting])
        except ValueError as error:
            yield SettingProblem(setting, str(error))
    try:
        header_pairs(values["headers"], values["header.separator"])
    except ValueError as error:
        yield SettingProblem("headers", str(error))


HTTP_SINK: Final = ConnectorClass(
    name="io.confluent.connect.http.HttpSinkConnector",
    kind=ConnectorKind.SINK,
    doc="Requests to a web service, one for each record or for several.",
    delivery=Delivery.AT_LEAST_ONCE,
    implementation="millbeck.pipeline.connect.connectors.web.sink:HttpSink",
    problems=_problems,
    config_def=ConfigDef(
        ConfigKey(
            name="http.api.url",
            kind=STRING,
            check=non_empty_text(),
            importance=_HIGH,
            doc="The address. ${topic} and ${key} in its path or query stand for the first record's.",
        ),
        ConfigKey(
            name="request.method",
            kind=STRING,
            default="POST",
            check=one_of_ignoring_case("POST", "PUT", "PATCH", "DELETE"),
            importance=_HIGH,
            doc="The method.",
        ),
        ConfigKey(
            name="headers",
            kind=STRING,
            default="",
            doc="More headers, as Name:value, separated by header.separator.",
        ),
        ConfigKey(name="header.separator", kind=STRING, default="|", importance=_LOW, doc="What separates headers."),
        ConfigKey(
            name="request.body.format",
            kind=STRING,
            default="json",
            check=one_of_ignoring_case("json", "string"),
            doc="json: values as JSON. string: texts and bytes as they are.",
        ),
        ConfigKey(
            name="batch.max.size",
            kind=INT,
            default=1,
            check=at_least(1),
            doc="How many records a request has at most.",
        ),
        ConfigKey(
            name="batch.json.as.array",
            kind=BOOLEAN,
            default=True,
            doc="Whether a request of several records is a JSON array; otherwise batch.separator is between them.",
        ),
        ConfigKey(name="batch.prefix", kind=STRING, default="", importance=_LOW, doc="What stands before a batch."),
        ConfigKey(name="batch.suffix", kind=STRING, default="", importance=_LOW, doc="What stands behind a batch."),
        ConfigKey(
            name="batch.separator", kind=STRING, default=",", importance=_LOW, doc="What stands between records."
        ),
        ConfigKey(
            name="auth.type",
            kind=STRING,
            default="NONE",
            check=one_of_ignoring_case("NONE", "BASIC", "BEARER"),
            doc="How requests are authenticated.",
        ),
        ConfigKey(name="connection.user", kind=STRING, default="", doc="For auth.type=BASIC: the user."),
        ConfigKey(name="connection.password", kind=PASSWORD, default=None, doc="For auth.type=BASIC: the password."),
        ConfigKey(name="bearer.token", kind=PASSWORD, default=None, doc="For auth.type=BEARER: the token."),
        ConfigKey(
            name="https.ssl.ca.location",
            kind=STRING,
            default=None,
            importance=_LOW,
            doc="The trusted certificates for https, in a PEM file; default: the system's.",
        ),
        ConfigKey(
            name="http.request.timeout.ms",
            kind=INT,
            default=30_000,
            check=at_least(1),
            importance=_LOW,
            doc="How long to wait for an answer.",
        ),
        ConfigKey(
            name="retry.on.status.codes",
            kind=LIST,
            default=("408", "425", "429", "500-599"),
            doc="Answers after which the share is tried again: codes and ranges.",
        ),
        ConfigKey(
            name="reject.on.status.codes",
            kind=LIST,
            default=("400", "409", "413", "415", "422"),
            doc="Answers that say something about the records: they are rejected, one by one if there are several. All "
            "other answers but 2xx fail the task.",
        ),
        ConfigKey(
            name="idempotency.key.header",
            kind=STRING,
            default="Idempotency-Key",
            doc="The header with a key that is the same whenever a request is repeated: topic, partition and offsets; "
            "empty: none.",
        ),
        ConfigKey(
            name="behavior.on.null.values",
            kind=STRING,
            default="ignore",
            check=one_of_ignoring_case("ignore", "delete", "fail"),
            doc="What a record without a value is: left out, a DELETE request without a body, or rejected.",
        ),
    ),
)
