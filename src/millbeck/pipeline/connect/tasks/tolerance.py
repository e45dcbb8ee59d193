"""What happens to records that cannot be handled: ``errors.tolerance``, retries, log, headers of dead letters."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar, TypeVarTuple

from millbeck.pipeline.connect.config.connector_options import SINK_OPTIONS, common_options
from millbeck.pipeline.connect.config.definitions import ConfigDef
from millbeck.pipeline.connect.dead_letters import PREFIX
from millbeck.pipeline.connect.errors import ConnectError, RetriableError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_ERRORS: Final = ConfigDef(
    *(key for key in common_options({}, dict.fromkeys(("key.converter", "value.converter", "header.converter")))
      if key.name.startswith("errors.")),
    *(key for key in SINK_OPTIONS if key.name.startswith("errors.")),
)  # fmt: skip
_RETRY_FIRST_S: Final = 0.3
_TRACE_MAX: Final = 8000


class Stage(Enum):
    """Where a record failed, in Kafka Connect's words."""

    TASK_PUT = "TASK_PUT"
    TASK_POLL = "TASK_POLL"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


class RecordFailed(ConnectError):
    """A record could not be handled at a stage; the cause says why."""

    def __init__(self, stage: Stage, class_name: str, cause: Exception) -> None:
        super().__init__(f"{stage.value}: {cause}")
        self.stage = stage
        self.class_name = class_name
        self.cause = cause


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """The connector's ``errors.*`` settings."""

    tolerates: bool = False
    logs: bool = False
    logs_records: bool = False
    retry_timeout_s: float = 0.0
    """Negative is for ever."""
    retry_delay_max_s: float = 60.0
    letter_topic: str = ""
    letter_replicas: int = 3
    has_letter_headers: bool = False

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> ErrorPolicy:
        """Raises `ConfigError`."""
        values = _ERRORS.parse(settings)
        timeout_ms = values["errors.retry.timeout"]
        return cls(
            tolerates=values["errors.tolerance"] == "all",
            logs=values["errors.log.enable"],
            logs_records=values["errors.log.include.messages"],
            retry_timeout_s=timeout_ms / 1000,
            retry_delay_max_s=values["errors.retry.delay.max.ms"] / 1000,
            letter_topic=values["errors.deadletterqueue.topic.name"].strip(),
            letter_replicas=values["errors.deadletterqueue.topic.replication.factor"],
            has_letter_headers=values["errors.deadletterqueue.context.headers.enable"],
        )


class Retries:
    """Runs an operation on a record again while it raises `RetriableError`, for at most ``errors.retry.timeout``."""

    def __init__(self, policy: ErrorPolicy, monotonic: Callable[[], float], pause: Callable[[float], None]) -> None:
        self._policy = policy
        self._monotonic = monotonic
        self._pause = pause
        self.count = 0

    def run(self, operation: Callable[[*Ts], T], *arguments: *Ts) -> T:
        policy = self._policy
        started_s = self._monotonic()
        delay_s = min(_RETRY_FIRST_S, policy.retry_delay_max_s)
        while True:
            try:
                return operation(*arguments)
            except RetriableError:
                left_s = policy.retry_timeout_s - (self._monotonic() - started_s)
                if policy.retry_timeout_s >= 0 and left_s <= 0:
                    raise
                self.count += 1
                self._pause(delay_s if policy.retry_timeout_s < 0 else min(delay_s, left_s))
                delay_s = min(2 * delay_s, policy.retry_delay_max_s)


def java_class_of(error: BaseException) -> str:
    """The exception's class as dead letters and traces have it: Kafka's name where there is one."""
    return getattr(error, "java_class", None) or f"{type(error).__module__}.{type(error).__qualname__}"


def trace_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_TRACE_MAX:]


def letter_headers(
    failed: RecordFailed, *, topic: str, partition: int, offset: int, connector: str, task: int
) -> tuple[tuple[str, bytes | None], ...]:
    """Kafka's headers of a dead letter."""
    fields = {
        "topic": topic,
        "partition": str(partition),
        "offset": str(offset),
        "connector.name": connector,
        "task.id": str(task),
        "stage": failed.stage.value,
        "class.name": failed.class_name,
        "exception.class.name": java_class_of(failed.cause),
        "exception.message": str(failed.cause),
        "exception.stacktrace": trace_of(failed.cause),
    }
    return tuple((f"{PREFIX}{name}", text.encode("utf-8", "replace")) for name, text in fields.items())
