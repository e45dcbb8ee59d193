"""What a connector class declares of itself: its names, its settings, how it delivers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from millbeck import __version__
from millbeck.pipeline.connect.config.definitions import ConfigDef


class ConnectorKind(Enum):
    """Whether a connector writes to the log or reads from it."""

    SOURCE = "source"
    SINK = "sink"


class Delivery(Enum):
    """How often a record reaches its target when shares are repeated after failures."""

    DETERMINISTIC = "exactly once: a repetition writes the same objects"
    IN_TARGET = "exactly once: positions in the target's own transaction"
    UPSERT = "exactly once for keys: a repetition sets the same rows"
    AT_LEAST_ONCE = "at least once"


class SettingProblem(NamedTuple):
    """What is wrong with a setting, and how to mend it."""

    setting: str
    problem: str


def _no_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    return ()


def _any_offset(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorClass:
    """A connector class as configurations name it."""

    name: str
    kind: ConnectorKind
    config_def: ConfigDef
    doc: str
    version: str = __version__
    is_exactly_once: bool = True
    """A source that stores its offsets together with its records: all of them do, unless they have no offsets."""
    is_single: bool = False
    """It has one task, whatever tasks.max says."""
    has_own_transactions: bool = False
    """A source that can keep the other system's transactions whole (``transaction.boundary=connector``)."""
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    """Of a sink, for docs and answers; with its settings it may differ: `SinkConnector.delivery`."""
    implementation: str = ""
    """``package.module:Class``, derived from `SourceConnector` or `SinkConnector`; empty if there is none yet."""
    problems: Callable[[Mapping[str, Any]], Iterable[SettingProblem]] = _no_problems
    """What is wrong with parsed values together, without a look at the other system."""
    offset_problem: Callable[[Mapping[str, Any], Mapping[str, Any] | None], str | None] = _any_offset
    """What is wrong with a partition and an offset that an administrator sets for a source; None resets the offset."""
    extra: str = ""
    """The extra of this package that installs what the implementation imports."""

    @property
    def short_names(self) -> tuple[str, ...]:
        simple = self.name.rpartition(".")[2]
        return (simple, simple.removesuffix("Connector"))
