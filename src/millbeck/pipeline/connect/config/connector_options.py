"""The settings that every connector has, those of sinks and those of sources, in the order of Kafka's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from millbeck.pipeline.connect.config.checks import (
    at_least,
    non_empty_text,
    one_of,
    one_of_ignoring_case,
    regular_expression,
    without_control_characters,
    without_duplicates,
)
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    SHORT,
    STRING,
    Check,
    ConfigDef,
    ConfigKey,
    Importance,
    Width,
)

COMMON: Final = "Common"
ERRORS: Final = "Error Handling"
EXACTLY_ONCE: Final = "Exactly Once Support"


def _converter(order: int, part: str, default: str | None) -> ConfigKey:
    return ConfigKey(
        name=f"{part}.converter",
        kind=CLASS,
        default=default,
        importance=Importance.LOW,
        doc=f"The converter of {part}s, instead of the worker's.",
        group=COMMON,
        order=order,
        width=Width.SHORT,
        display_name=f"{part.capitalize()} converter class",
    )


def plugin_version(
    name: str, order: int, width: Width, shown: str, version: str | None, group: str = COMMON
) -> ConfigKey:
    """The setting for the version of a class (KIP-891); here every class has one version."""
    return ConfigKey(
        name=name,
        kind=STRING,
        default=version,
        check=Check(
            lambda value: None if value in (None, version) else f"the version of this class is {version}", "the version"
        ),
        importance=Importance.LOW if "converter" in name else Importance.MEDIUM,
        doc="The version of the class; only the installed one can be named.",
        group=group,
        order=order,
        width=width,
        display_name=shown,
        recommended=() if version is None else (version,),
    )


def _unique_aliases(value: tuple[str, ...] | None) -> str | None:
    if value is None:
        return "entry must be non null"
    return "Duplicate alias provided." if len(set(value)) < len(value) else None


def common_options(versions: Mapping[str, str | None], defaults: Mapping[str, str | None]) -> ConfigDef:
    """The settings of both sinks and sources. ``versions`` are those of the connector and of its converters by setting,
    ``defaults`` the worker's converters.
    """
    return ConfigDef(
        ConfigKey(
            name="name",
            kind=STRING,
            check=without_control_characters(),
            importance=Importance.HIGH,
            doc="The name of the connector; each has its own.",
            group=COMMON,
            order=1,
            width=Width.MEDIUM,
            display_name="Connector name",
        ),
        ConfigKey(
            name="connector.class",
            kind=STRING,
            importance=Importance.HIGH,
            doc="The class of the connector, by its whole name or the last part of it, with or without Connector.",
            group=COMMON,
            order=2,
            width=Width.LONG,
            display_name="Connector class",
        ),
        plugin_version(
            "connector.plugin.version", 3, Width.MEDIUM, "Connector version", versions.get("connector.class")
        ),
        ConfigKey(
            name="tasks.max",
            kind=INT,
            default=1,
            check=at_least(1),
            importance=Importance.HIGH,
            doc="Into how many shares the work is cut at most.",
            group=COMMON,
            order=4,
            width=Width.SHORT,
            display_name="Tasks max",
        ),
        ConfigKey(
            name="tasks.max.enforce",
            kind=BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether a connector with more tasks than tasks.max fails.",
            group=COMMON,
            order=5,
            width=Width.SHORT,
            display_name="Enforce tasks max",
        ),
        *_converters(versions, defaults),
        *_chains(),
        *_error_handling(),
    )


def _converters(versions: Mapping[str, str | None], defaults: Mapping[str, str | None]) -> list[ConfigKey]:
    keys: list[ConfigKey] = []
    for order, part in ((6, "key"), (8, "value"), (10, "header")):
        setting = f"{part}.converter"
        shown = f"{part.capitalize()} converter version"
        keys.append(_converter(order, part, defaults[setting]))
        keys.append(plugin_version(f"{setting}.plugin.version", order + 1, Width.SHORT, shown, versions.get(setting)))
    return keys


def _chains() -> list[ConfigKey]:
    found = [
        ConfigKey(
            name=name,
            kind=LIST,
            default=(),
            check=Check(_unique_aliases, f"unique {what} aliases"),
            importance=Importance.LOW,
            doc=f"The names of the {name}, in their order; each has settings that begin with {name}.NAME.",
            group=name.capitalize(),
            order=order,
            width=Width.LONG,
            display_name=name.capitalize(),
        )
        for order, name, what in ((12, "transforms", "transformation"), (13, "predicates", "predicate"))
    ]
    reload = ConfigKey(
        name="config.action.reload",
        kind=STRING,
        default="restart",
        check=one_of("none", "restart"),
        importance=Importance.LOW,
        doc="What happens when a value from a config provider changes.",
        group=COMMON,
        order=14,
        width=Width.MEDIUM,
        display_name="Reload Action",
    )
    return [*found, reload]


def _error_handling() -> list[ConfigKey]:
    return [
        _error("retry.timeout", LONG, 0, 1, Width.MEDIUM, "Retry Timeout for Errors",
               "For how many milliseconds a failed operation is tried again; -1 for ever."),
        _error("retry.delay.max.ms", LONG, 60_000, 2, Width.MEDIUM, "Maximum Delay Between Retries for Errors",
               "The longest wait between two attempts, in milliseconds."),
        _error("tolerance", STRING, "none", 3, Width.SHORT, "Error Tolerance",
               "none: the first record that cannot be handled fails the task. all: such records are left out.",
               one_of("none", "all")),
        _error("log.enable", BOOLEAN, False, 4, Width.SHORT, "Log Errors", "Whether each error is written to the log."),
        _error("log.include.messages", BOOLEAN, False, 5, Width.SHORT, "Log Error Details",
               "Whether the log has the place, or for sources the content, of the record, too."),
    ]  # fmt: skip


def _error(
    name: str, kind: Any, default: Any, order: int, width: Width, shown: str, doc: str, check: Check | None = None
) -> ConfigKey:
    return ConfigKey(
        name=f"errors.{name}",
        kind=kind,
        default=default,
        check=check,
        doc=doc,
        group=ERRORS,
        order=order,
        width=width,
        display_name=shown,
    )


SINK_OPTIONS: Final = (
    ConfigKey(
        name="topics",
        kind=LIST,
        default=(),
        check=without_duplicates(),
        importance=Importance.HIGH,
        doc="The topics to read, separated by commas.",
        group=COMMON,
        order=4,
        width=Width.LONG,
        display_name="Topics",
    ),
    ConfigKey(
        name="topics.regex",
        kind=STRING,
        default="",
        check=regular_expression(),
        importance=Importance.HIGH,
        doc="A regular expression of the topics to read, in Java's syntax, instead of topics.",
        group=COMMON,
        order=4,
        width=Width.LONG,
        display_name="Topics regex",
    ),
    _error("deadletterqueue.topic.name", STRING, "", 6, Width.MEDIUM, "Dead Letter Queue Topic Name",
           "The topic that records go to which cannot be handled; none when empty."),
    _error("deadletterqueue.topic.replication.factor", SHORT, 3, 7, Width.MEDIUM,
           "Dead Letter Queue Topic Replication Factor", "The replicas of that topic when it is made."),
    _error("deadletterqueue.context.headers.enable", BOOLEAN, False, 8, Width.MEDIUM, "Enable Error Context Headers",
           "Whether records there have headers with the place and the error: __connect.errors.*"),
)  # fmt: skip

SOURCE_OPTIONS: Final = (
    ConfigKey(
        name="topic.creation.groups",
        kind=LIST,
        default=(),
        check=without_duplicates(),
        importance=Importance.LOW,
        doc="Groups of topics that are made with settings of their own: topic.creation.GROUP.include and so on.",
        group="Topic Creation",
        order=1,
        width=Width.LONG,
        display_name="Topic Creation Groups",
    ),
    ConfigKey(
        name="exactly.once.support",
        kind=STRING,
        default="requested",
        check=one_of_ignoring_case("REQUIRED", "REQUESTED"),
        doc="required: a connector that cannot write each record exactly once is refused.",
        group=EXACTLY_ONCE,
        order=2,
        width=Width.SHORT,
        display_name="Exactly once support",
    ),
    ConfigKey(
        name="transaction.boundary",
        kind=STRING,
        default="poll",
        check=one_of_ignoring_case("INTERVAL", "POLL", "CONNECTOR"),
        doc="When a transaction ends: with each batch (poll), after a time (interval), or where the connector says.",
        group=EXACTLY_ONCE,
        order=3,
        width=Width.SHORT,
        display_name="Transaction Boundary",
    ),
    ConfigKey(
        name="transaction.boundary.interval.ms",
        kind=LONG,
        default=None,
        check=Check(lambda value: at_least(0).problem(value) if value is not None else None, "[0,...]"),
        importance=Importance.LOW,
        doc="The time of transaction.boundary=interval; offset.flush.interval.ms when not set.",
        group=EXACTLY_ONCE,
        order=4,
        width=Width.SHORT,
        display_name="Transaction boundary interval",
    ),
    ConfigKey(
        name="offsets.storage.topic",
        kind=STRING,
        default=None,
        check=non_empty_text(),
        importance=Importance.LOW,
        doc="A topic of the connector's own for its offsets, instead of the worker's.",
        group="offsets.topic",
        order=1,
        width=Width.LONG,
        display_name="Offsets topic",
    ),
)
