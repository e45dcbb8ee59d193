"""The connectors that configurations can name, with their settings.

A connector is known by its Java name, or the last part of it with or without ``Connector``; a class of another package
by its entry point in ``millbeck.connectors``. The classes themselves are imported when a connector of them is made:
`implementation_of`. A configuration comes from the network: it never names a module to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from millbeck.pipeline.connect.config.checks import non_empty_text
from millbeck.pipeline.connect.config.definitions import INT, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.connectors.connector_class import (
    ConnectorClass,
    ConnectorKind,
    Delivery,
    SettingProblem,
)
from millbeck.pipeline.connect.connectors.datagen.settings import DATAGEN_SOURCE
from millbeck.pipeline.connect.connectors.jdbc.settings import JDBC_SINK, JDBC_SOURCE
from millbeck.pipeline.connect.connectors.objects.settings import OBJECT_SINK, OBJECT_SOURCE
from millbeck.pipeline.connect.connectors.tables.settings import DELTA_SINK, ICEBERG_SINK
from millbeck.pipeline.connect.connectors.web.settings import HTTP_SINK
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.postgres.declared import POSTGRES_SOURCE

if TYPE_CHECKING:
    from millbeck.pipeline.connect.connectors.interface import Connector

__all__ = [
    "CONNECTORS",
    "ENTRY_POINTS",
    "FILE_SINK",
    "FILE_SOURCE",
    "ConnectorClass",
    "ConnectorKind",
    "Delivery",
    "SettingProblem",
    "connector_of",
    "connectors_by_name",
    "found_connector",
    "implementation_of",
    "installed_connectors",
]

ENTRY_POINTS: Final = "millbeck.connectors"
_PACKAGE: Final = "millbeck.pipeline.connect.connectors"


def _file_offset_problem(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> str | None:
    if offset is None:
        return None
    if "filename" not in partition:
        return "Partition objects should contain the key 'filename'"
    if "position" not in offset:
        return "Offset objects should either be null or contain the key 'position'"
    position = offset["position"]
    if not isinstance(position, int) or isinstance(position, bool):
        return "The value for the 'position' key in the offset is expected to be a Long value"
    if position < 0:
        return "The value for the 'position' key in the offset should be a non-negative value"
    return None


FILE_SOURCE: Final = ConnectorClass(
    name="org.apache.kafka.connect.file.FileStreamSourceConnector",
    kind=ConnectorKind.SOURCE,
    doc="The lines of a file, each a record.",
    is_single=True,
    implementation=f"{_PACKAGE}.files.source:FileSource",
    offset_problem=_file_offset_problem,
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
    delivery=Delivery.IN_TARGET,
    implementation=f"{_PACKAGE}.files.sink:FileSink",
    config_def=ConfigDef(
        ConfigKey(name="file", kind=STRING, default=None, importance=Importance.HIGH, doc="The file to write."),
    ),
)

CONNECTORS: Final = (
    FILE_SINK,
    FILE_SOURCE,
    DATAGEN_SOURCE,
    DELTA_SINK,
    HTTP_SINK,
    ICEBERG_SINK,
    JDBC_SINK,
    JDBC_SOURCE,
    OBJECT_SINK,
    OBJECT_SOURCE,
    POSTGRES_SOURCE,
)


@lru_cache
def connectors_by_name() -> Mapping[str, ConnectorClass]:
    """The built-in connectors by all of their names."""
    return {name: known for known in CONNECTORS for name in (known.name, *known.short_names)}


def found_connector(name: str) -> ConnectorClass | None:
    """The connector class of this name, built in or of another package; raises `ConfigError` for one that cannot be
    loaded."""
    return connectors_by_name().get(name) or _installed(name)


def installed_connectors() -> list[ConnectorClass]:
    """The connectors of other packages; those that cannot be loaded are left out."""
    from importlib.metadata import entry_points

    found: list[ConnectorClass] = []
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            known = _installed(entry.name)
        except ConfigError:
            continue
        if known is not None:
            found.append(known)
    return found


def connector_of(name: str) -> ConnectorClass:
    """The connector class of this name. Raises `ConfigError` with the most similar name and all known names."""
    found = found_connector(name)
    if found is not None:
        return found
    known = [*CONNECTORS, *installed_connectors()]
    short = [each for connector in known for each in connector.short_names]
    near = get_close_matches(name.rpartition(".")[2], short, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    listed = ", ".join(each.name for each in known)
    raise ConfigError(
        f"Failed to find any class that implements Connector and which name matches {name[:200]}, {hint}"
        f"available connectors are: {listed}"
    )


def implementation_of(known: ConnectorClass) -> type[Connector]:
    """The class itself, imported. Raises `ConfigError` if what it needs is not installed."""
    module, _, attribute = known.implementation.partition(":")
    try:
        found: type[Connector] = getattr(import_module(module), attribute)
    except ImportError as error:
        install = f": pip install 'millbeck[{known.extra}]'" if known.extra else ""
        raise ConfigError(f"{known.name} cannot be loaded ({error}){install}") from error
    return found


@lru_cache(maxsize=256)
def _installed(name: str) -> ConnectorClass | None:
    """A class of another package, known by the name of its entry point, or by the name that it declares."""
    from importlib.metadata import entry_points

    for entry in entry_points(group=ENTRY_POINTS):
        if name not in (entry.name, entry.name.removesuffix("Connector"), entry.value.replace(":", ".")):
            continue
        try:
            made = entry.load()
            found: ConnectorClass = replace(made.declared, implementation=entry.value)
            return found
        except Exception as error:
            raise ConfigError(f"connector.class: the entry point {entry.name} cannot be loaded: {error}") from error
    return None
