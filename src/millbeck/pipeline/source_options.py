"""The options of ``format("millbeck")`` as a source: those of Spark's Kafka source, parsed and validated. Pure.

Spark passes options in any case and as strings. Client settings are written ``kafka.<setting>`` under Kafka's names. A
source reads committed records only, unless ``kafka.isolation.level`` is ``read_uncommitted``. That is the only default
that differs from Spark's own source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.short_errors import did_you_mean

EARLIEST: Final = -2
LATEST: Final = -1

Partitioned = Mapping[str, Mapping[int, int]]
"""A number (offset or timestamp) by partition."""

MANAGED_SETTINGS: Final = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "a query stores its offsets in its checkpoint",
    "key.deserializer": "keys are binary: cast or decode the column",
    "value.deserializer": "values are binary: cast or decode the column",
    "interceptor.classes": "there are no objects to deserialize",
}
"""Client settings that a source does not accept, and why."""

_STRATEGIES: Final = ("subscribe", "subscribepattern", "assign")
_TOLERATED: Final = (
    "kafkaconsumer.polltimeoutms",
    "fetchoffset.numretries",
    "fetchoffset.retryintervalms",
    "kafka.group.id",
    "path",
    "queryname",
    "eachbatch",
)
SOURCE_OPTIONS: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "chunkBytes",
    "idleAfter",
)
IDLE_AFTER: Final = "idleAfter"
STREAM_OPTIONS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay", IDLE_AFTER)
"""The options that a batch query does not take."""
SINK_OPTIONS: Final = ("topic", "delivery", "checkpointLocation", "skipped")
"""A topology gives its options to sources and sink alike, so each takes those of the other and ignores them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The start or end position of a query: an end of the log, offsets, or timestamps. Exactly one is set."""

    everywhere: int | None = None
    """`EARLIEST` or `LATEST`."""
    offsets: Partitioned | None = None
    timestamp_ms: int | None = None
    timestamps: Partitioned | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    settings: Mapping[str, str]
    """Client settings, under Kafka's names."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    starting: Position
    ending: Position
    fails_beyond_last_timestamp: bool = True
    """Whether a starting timestamp after the last record is an error; otherwise it means the end."""
    fails_on_data_loss: bool = True
    includes_headers: bool = False
    offsets_per_trigger_max: int | None = None
    offsets_per_trigger_min: int | None = None
    trigger_delay_max_s: float = 15 * 60.0
    partitions_min: int | None = None
    records_per_partition_max: int | None = None
    chunk_bytes_max: int | None = None
    idle_after_s: float | None = None
    """After this time without new records a stream has marker rows, whose event time goes on with the clock."""

    @property
    def subscription(self) -> str:
        """A description of the topics, for messages."""
        if self.pattern is not None:
            return f"topics that match {self.pattern!r}"
        return f"topics {', '.join(self.topics or self.assigned)}"


def parse_source_options(given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """Parse the options of a source. Raises `InvalidOption` naming the option."""
    options = {name.lower(): value for name, value in given.items()}
    _check_names(given)
    strategies = [name for name in _STRATEGIES if name in options]
    if len(strategies) != 1:
        raise InvalidOption(
            "exactly one of the options subscribe, subscribePattern and assign must be set: "
            f"{'none' if not strategies else ' and '.join(strategies)} is set"
        )
    starting = _position(options, "starting", default=LATEST if is_streaming else EARLIEST)
    ending = _position(options, "ending", default=LATEST)
    _check_positions(options, starting, ending, is_streaming)
    per_trigger_max = _positive(options, "maxOffsetsPerTrigger")
    per_trigger_min = _positive(options, "minOffsetsPerTrigger")
    if per_trigger_max is not None and per_trigger_min is not None and per_trigger_min > per_trigger_max:
        raise InvalidOption(f"minOffsetsPerTrigger={per_trigger_min} is above maxOffsetsPerTrigger={per_trigger_max}")
    return SourceOptions(
        settings=client_settings(options, MANAGED_SETTINGS, _source_defaults(options)),
        topics=_names(options["subscribe"]) if "subscribe" in options else (),
        pattern=options.get("subscribepattern"),
        assigned=_assignment(options["assign"]) if "assign" in options else {},
        starting=starting,
        ending=ending,
        fails_beyond_last_timestamp=_strategy(options) == "error",
        fails_on_data_loss=boolean(options, "failOnDataLoss", default=True),
        includes_headers=boolean(options, "includeHeaders", default=False),
        offsets_per_trigger_max=per_trigger_max,
        offsets_per_trigger_min=per_trigger_min,
        trigger_delay_max_s=_duration_s("maxTriggerDelay", options.get("maxtriggerdelay", "15m")),
        partitions_min=_positive(options, "minPartitions"),
        records_per_partition_max=_positive(options, "maxRecordsPerPartition"),
        chunk_bytes_max=_positive(options, "chunkBytes"),
        idle_after_s=_idle_after_s(options),
    )


def includes_headers(given: Mapping[str, str]) -> bool:
    """Whether the rows have a column ``headers``, on which the schema depends."""
    return boolean({name.lower(): value for name, value in given.items()}, "includeHeaders", default=False)


def client_settings(
    options: Mapping[str, str], managed: Mapping[str, str], defaults: Mapping[str, str]
) -> dict[str, str]:
    """The ``kafka.`` options without the prefix; settings that the source or sink sets itself are refused."""
    settings = dict(defaults)
    for name, value in options.items():
        if not name.startswith("kafka."):
            continue
        setting = name.removeprefix("kafka.")
        if setting in managed:
            raise InvalidOption(f"the option {name} is not supported: {managed[setting]}")
        if setting != "group.id":
            settings[setting] = value
    if not settings.get("bootstrap.servers", "").strip():
        raise InvalidOption("the option kafka.bootstrap.servers is missing: brokers as host:port, separated by commas")
    return settings


def boolean(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise InvalidOption(f"the option {name} must be true or false, not {text!r}")
    return text.strip().lower() == "true"


def _source_defaults(options: Mapping[str, str]) -> dict[str, str]:
    return {
        "client.id": options.get("groupidprefix", "millbeck-spark-source"),
        "isolation.level": "read_committed",
        "allow.auto.create.topics": "false",
    }


def _check_names(given: Mapping[str, str]) -> None:
    for name in given:
        if name.lower().replace(".", "") in ("bootstrapservers", "topic", "topics"):
            instead = "kafka.bootstrap.servers" if "server" in name.lower() else "subscribe"
            raise InvalidOption(f"there is no option {name} for reading: use {instead}")
    check_known(given)


def check_known(given: Iterable[str]) -> None:
    """Raise `InvalidOption` for an option that neither the source nor the sink has."""
    known = {name.lower() for name in (*SOURCE_OPTIONS, *SINK_OPTIONS, *_TOLERATED)}
    for name in given:
        lowered = name.lower()
        if not lowered.startswith("kafka.") and lowered not in known:
            hint = did_you_mean(name, (*SOURCE_OPTIONS, *SINK_OPTIONS))
            raise InvalidOption(
                f"there is no option {name}{hint or ' (settings of the client have the prefix kafka.)'}"
            )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise InvalidOption("the option subscribe contains no topic")
    return names


def _assignment(text: str) -> dict[str, tuple[int, ...]]:
    found = _json("assign", text)
    assigned: dict[str, tuple[int, ...]] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, list) or not all(type(number) is int and number >= 0 for number in partitions):
            raise InvalidOption('the option assign must be JSON like {"orders":[0,1]}')
        assigned[topic] = tuple(sorted(set(partitions)))
    if not assigned:
        raise InvalidOption("the option assign contains no partition")
    return assigned


def _position(options: Mapping[str, str], which: str, *, default: int) -> Position:
    """The position of the options. As in Spark, one timestamp for all partitions overrides timestamps by partition, and
    those override offsets."""
    text = options.get(f"{which}timestamp")
    if text is not None:
        return Position(timestamp_ms=_number(f"{which}Timestamp", text))
    text = options.get(f"{which}offsetsbytimestamp")
    if text is not None:
        return Position(timestamps=partitioned(f"{which}OffsetsByTimestamp", text, least=0))
    text = options.get(f"{which}offsets")
    if text is None:
        return Position(everywhere=default)
    if text.strip().lower() in ("earliest", "latest"):
        return Position(everywhere=EARLIEST if text.strip().lower() == "earliest" else LATEST)
    return Position(offsets=partitioned(f"{which}Offsets", text, least=EARLIEST))


def _check_positions(options: Mapping[str, str], starting: Position, ending: Position, is_streaming: bool) -> None:
    if is_streaming:
        for name in ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"):
            if name.lower() in options:
                raise InvalidOption(f"the option {name} is only for batch queries: a stream has no end")
        return
    for name in STREAM_OPTIONS:
        if name.lower() in options:
            raise InvalidOption(f"the option {name} is only for streaming queries")
    if starting.everywhere == LATEST or _names_one(starting, LATEST):
        raise InvalidOption("startingOffsets cannot be latest (-1) in a batch query: there would be nothing to read")
    if ending.everywhere == EARLIEST or _names_one(ending, EARLIEST):
        raise InvalidOption("endingOffsets cannot be earliest (-2): there would be nothing to read")


def _names_one(position: Position, offset: int) -> bool:
    return any(offset in partitions.values() for partitions in (position.offsets or {}).values())


def partitioned(name: str, text: str, *, least: int) -> dict[str, dict[int, int]]:
    """Parse JSON like ``{"orders":{"0":23,"1":-2}}``."""
    found = _json(name, text)
    parsed: dict[str, dict[int, int]] = {}
    for topic, partitions in found.items():
        if not isinstance(partitions, dict):
            raise InvalidOption(f'the option {name} must be JSON like {{"orders":{{"0":23,"1":-2}}}}')
        parsed[topic] = {}
        for partition, number in partitions.items():
            if not partition.isdigit() or type(number) is not int or number < least:
                raise InvalidOption(f"the option {name} has {partition!r}: {number!r} for topic {topic}")
            parsed[topic][int(partition)] = number
    return parsed


def _json(name: str, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidOption(f"the option {name} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidOption(f"the option {name} must be a JSON object by topic, not {text!r}")
    return found


def _strategy(options: Mapping[str, str]) -> str:
    text = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if text not in ("error", "latest"):
        raise InvalidOption(f"startingOffsetsByTimestampStrategy must be error or latest, not {text!r}")
    return text


def _number(name: str, text: str) -> int:
    if not text.strip().isdigit():
        raise InvalidOption(f"the option {name} must be a number, not {text!r}")
    return int(text)


def _positive(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    number = _number(name, text)
    if number == 0:
        raise InvalidOption(f"the option {name} must be above 0")
    return number


def _duration_s(name: str, text: str) -> float:
    """Parse a duration as Spark does: a number and ms, s, m, min, h or d; seconds without a unit."""
    digits = text.strip().rstrip("abcdefghijklmnopqrstuvwxyz ").strip()
    unit = text.strip()[len(digits) :].strip()
    seconds = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}.get(unit)
    if seconds is None or not digits.isdigit():
        raise InvalidOption(f"the option {name} must be a duration like 90s or 15m, not {text!r}")
    return int(digits) * seconds


def _idle_after_s(options: Mapping[str, str]) -> float | None:
    text = options.get("idleafter")
    if text is None:
        return None
    seconds = _duration_s("idleAfter", text)
    if seconds <= 0:
        raise InvalidOption("the option idleAfter must be above 0")
    return seconds
