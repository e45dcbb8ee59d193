"""The connectors that configurations can name, with their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import Final

from millbeck import __version__
from millbeck.pipeline.connect.config.checks import non_empty_text
from millbeck.pipeline.connect.config.definitions import INT, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import ConfigError


class ConnectorKind(Enum):
    """Whether a connector writes to the log or reads from it."""

    SOURCE = "source"
    SINK = "sink"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorClass:
    """A connector class. ``is_exactly_once``: a source that stores its offsets together with its records."""

    name: str
    kind: ConnectorKind
    config_def: ConfigDef
    doc: str
    version: str = __version__
    is_exactly_once: bool = True
    has_own_transactions: bool = False

    @property
    def short_names(self) -> tuple[str, ...]:
        simple = self.name.rpartition(".")[2]
        return (simple, simple.removesuffix("Connector"))


FILE_SOURCE: Final = ConnectorClass(
    name="org.apache.kafka.connect.file.FileStreamSourceConnector",
    kind=ConnectorKind.SOURCE,
    doc="The lines of a file, each a record.",
    config_def=ConfigDef(
        ConfigKey(name="file", kind=STRING, default=None, importance=Importance.HIGH, doc="The file to read."),
        ConfigKey(
            name="topic",
            kind=STRING,
            check=non_empty_text(),
            importance=Importance.HIGH,
            doc="The topic to write to.",
        ),
        ConfigKey(
            name="batch.size",
            kind=INT,
            default=2000,
            importance=Importance.LOW,
            doc="How many lines Kafka's connector reads at once.",
        ),
    ),
)

FILE_SINK: Final = ConnectorClass(
    name="org.apache.kafka.connect.file.FileStreamSinkConnector",
    kind=ConnectorKind.SINK,
    doc="A file with a line for each record.",
    config_def=ConfigDef(
        ConfigKey(name="file", kind=STRING, default=None, importance=Importance.HIGH, doc="The file to write."),
    ),
)

CONNECTORS: Final = (FILE_SINK, FILE_SOURCE)


def connectors_by_name() -> Mapping[str, ConnectorClass]:
    return {name: known for known in CONNECTORS for name in (known.name, *known.short_names)}


def connector_of(name: str) -> ConnectorClass:
    """The connector class of this name. Raises `ConfigError` with the most similar name and all known names."""
    known = connectors_by_name()
    found = known.get(name)
    if found is not None:
        return found
    near = get_close_matches(name.rpartition(".")[2], [each for each in known if "." not in each], n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    listed = ", ".join(each.name for each in CONNECTORS)
    raise ConfigError(
        f"Failed to find any class that implements Connector and which name matches {name[:200]}, {hint}"
        f"available connectors are: {listed}"
    )
