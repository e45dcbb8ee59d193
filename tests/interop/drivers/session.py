"""What the Python drivers share: the command loop and the shape of records."""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

PATTERN = b"0123456789abcdef"
VALUE_SHOWN_MAX = 1024


class DriverError(Exception):
    """The client reported an error: Kafka's code where it has one, and its name."""

    def __init__(self, code: int | None, name: str, message: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.name = name


class Unsupported(Exception):
    """The client has no such call."""


def value_to_send(record: dict[str, Any]) -> bytes | None:
    if "value_size" in record:
        size = int(record["value_size"])
        return (PATTERN * (size // len(PATTERN) + 1))[:size]
    value = record.get("value")
    return None if value is None else str(value).encode()


def text_or_none(raw: bytes | str | None) -> str | None:
    return raw.decode() if isinstance(raw, bytes) else raw


def raw_or_none(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def headers_to_send(record: dict[str, Any]) -> list[tuple[str, bytes | None]]:
    return [(name, raw_or_none(value)) for name, value in record.get("headers") or []]


def received(
    *,
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]] | tuple[tuple[str, bytes | None], ...] | None,
) -> dict[str, Any]:
    shown = None if value is None or len(value) > VALUE_SHOWN_MAX else value.decode()
    return {
        "partition": partition,
        "offset": offset,
        "timestamp_ms": timestamp_ms,
        "key": text_or_none(key),
        "value": shown,
        "value_size": -1 if value is None else len(value),
        "value_sha256": "" if value is None else hashlib.sha256(value).hexdigest(),
        "headers": [[name, text_or_none(one)] for name, one in headers or []],
    }


def received_record(record: Any) -> dict[str, Any]:
    """A record of aiokafka or kafka-python."""
    return received(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )


class Driver:
    """Verbs are methods named `do_<verb>` that take the command's arguments and return a JSON object."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        verb = command.pop("verb")
        method = getattr(self, f"do_{verb}", None)
        if method is None:
            return {"unsupported": f"no verb {verb}"}
        try:
            return dict(method(**command) or {})
        except Unsupported as reason:
            return {"unsupported": str(reason)}
        except Exception as error:
            told = error if isinstance(error, DriverError) else self.as_error(error)
            return {"error": {"code": told.code, "name": told.name, "message": str(told)}}

    def as_error(self, error: Exception) -> DriverError:
        """The client's own exception, with Kafka's error code where it carries one."""
        return DriverError(None, type(error).__name__, str(error))

    def close(self) -> None:
        """Called once, at the end of input."""


def serve(driver_class: type[Driver]) -> None:
    driver = driver_class(sys.argv[1])
    for line in sys.stdin:
        print(json.dumps(driver.answer(json.loads(line))), flush=True)
    driver.close()
