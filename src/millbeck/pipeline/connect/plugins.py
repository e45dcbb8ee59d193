"""The converters, transforms and predicates that a configuration can name, and their names.

A class is known by its Java name (``org.apache.kafka.connect.transforms.Cast$Value``), by the last part of it
(``Cast$Value``), as Kafka Connect has it also without the suffix that says what it is (``Json`` for ``JsonConverter``).
Classes of other packages are known by their entry points in ``millbeck.converters``, ``millbeck.transformations`` and
``millbeck.predicates``. A configuration comes from the network: it never names a module to import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import lru_cache, partial
from typing import Any, Final

from millbeck.pipeline.connect.config.definitions import ConfigDef
from millbeck.pipeline.connect.converters.avro_converter import AvroConverter
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.converters.json_schema_converter import JsonSchemaConverter
from millbeck.pipeline.connect.converters.plain import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    SimpleHeaderConverter,
    StringConverter,
)
from millbeck.pipeline.connect.converters.protobuf_converter import ProtobufConverter
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.model.record import Side
from millbeck.pipeline.connect.transforms.base import SidedTransformation
from millbeck.pipeline.connect.transforms.cast import Cast
from millbeck.pipeline.connect.transforms.debezium import EventRouter, ExtractNewRecordState
from millbeck.pipeline.connect.transforms.fields import ExtractField, HoistField, MaskField, ReplaceField, ValueToKey
from millbeck.pipeline.connect.transforms.flatten import Flatten
from millbeck.pipeline.connect.transforms.headers import DropHeaders, HeaderFrom, InsertHeader
from millbeck.pipeline.connect.transforms.insert_field import InsertField
from millbeck.pipeline.connect.transforms.predicates import HasHeaderKey, RecordIsTombstone, TopicNameMatches
from millbeck.pipeline.connect.transforms.routing import Filter, RegexRouter, SetSchemaMetadata, TimestampRouter
from millbeck.pipeline.connect.transforms.timestamps import TimestampConverter

_KAFKA: Final = "org.apache.kafka.connect"


class PluginKind(Enum):
    """The kind of a class; the value is its type in ``GET /connector-plugins``."""

    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"


@dataclass(frozen=True, slots=True)
class Plugin:
    """A class that configurations can name. ``make`` takes the texts of a converter's settings, and the parsed values
    of a transform's or predicate's.
    """

    name: str
    kinds: tuple[PluginKind, ...]
    config_def: ConfigDef
    make: Callable[[Mapping[str, Any]], Any]
    doc: str

    @property
    def short_names(self) -> tuple[str, ...]:
        simple = self.name.rpartition(".")[2]
        suffix = {PluginKind.TRANSFORMATION: "Transformation", PluginKind.PREDICATE: "Predicate"}.get(
            self.kinds[0], "Converter"
        )
        # Kafka forms them from the class inside, so `Cast$Value` is ambiguous as `Value`; the whole is not.
        pruned = simple.removesuffix(suffix)
        return (simple,) if pruned in (simple, "") else (simple, pruned)


def _doc(made: type) -> str:
    return (made.__doc__ or "").strip().partition("\n")[0]


def _sided(package: str, made: type[SidedTransformation]) -> list[Plugin]:
    return [
        Plugin(
            f"{package}.{made.__name__}${side.value}",
            (PluginKind.TRANSFORMATION,),
            made.config_def,
            partial(made, side),
            _doc(made),
        )
        for side in Side
    ]


def _plain(package: str, kinds: tuple[PluginKind, ...], *classes: Any) -> list[Plugin]:
    return [Plugin(f"{package}.{made.__name__}", kinds, made.config_def, made, _doc(made)) for made in classes]


_BOTH: Final = (PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER)
BUILT_IN: Final[tuple[Plugin, ...]] = (
    *_plain(f"{_KAFKA}.json", _BOTH, JsonConverter),
    *_plain(f"{_KAFKA}.storage", _BOTH, StringConverter),
    *_plain(f"{_KAFKA}.storage", (PluginKind.HEADER_CONVERTER,), SimpleHeaderConverter),
    *_plain(
        f"{_KAFKA}.converters",
        _BOTH,
        ByteArrayConverter,
        BooleanConverter,
        ShortConverter,
        IntegerConverter,
        LongConverter,
        FloatConverter,
        DoubleConverter,
    ),
    *_sided(f"{_KAFKA}.transforms", Cast),
    *_plain(f"{_KAFKA}.transforms", (PluginKind.TRANSFORMATION,), DropHeaders),
    *_sided(f"{_KAFKA}.transforms", ExtractField),
    *_plain(f"{_KAFKA}.transforms", (PluginKind.TRANSFORMATION,), Filter),
    *_sided(f"{_KAFKA}.transforms", Flatten),
    *_sided(f"{_KAFKA}.transforms", HeaderFrom),
    *_sided(f"{_KAFKA}.transforms", HoistField),
    *_sided(f"{_KAFKA}.transforms", InsertField),
    *_plain(f"{_KAFKA}.transforms", (PluginKind.TRANSFORMATION,), InsertHeader),
    *_sided(f"{_KAFKA}.transforms", MaskField),
    *_plain(f"{_KAFKA}.transforms", (PluginKind.TRANSFORMATION,), RegexRouter),
    *_sided(f"{_KAFKA}.transforms", ReplaceField),
    *_sided(f"{_KAFKA}.transforms", SetSchemaMetadata),
    *_sided(f"{_KAFKA}.transforms", TimestampConverter),
    *_plain(f"{_KAFKA}.transforms", (PluginKind.TRANSFORMATION,), TimestampRouter, ValueToKey),
    *_plain("io.debezium.transforms", (PluginKind.TRANSFORMATION,), ExtractNewRecordState),
    *_plain("io.debezium.transforms.outbox", (PluginKind.TRANSFORMATION,), EventRouter),
    *_plain("io.confluent.connect.avro", (PluginKind.CONVERTER,), AvroConverter),
    *_plain("io.confluent.connect.json", (PluginKind.CONVERTER,), JsonSchemaConverter),
    *_plain("io.confluent.connect.protobuf", (PluginKind.CONVERTER,), ProtobufConverter),
    *_plain(
        f"{_KAFKA}.transforms.predicates", (PluginKind.PREDICATE,), HasHeaderKey, RecordIsTombstone, TopicNameMatches
    ),
)

_GROUPS: Final = {
    PluginKind.CONVERTER: "millbeck.converters",
    PluginKind.TRANSFORMATION: "millbeck.transformations",
    PluginKind.PREDICATE: "millbeck.predicates",
}


def plugin_of(setting: str, name: str, kind: PluginKind) -> Plugin:
    """The class that a setting names. Raises `ConfigError` with the most similar name and all known names."""
    plugins = known_plugins(kind)
    found = plugins.get(name) or _installed(setting, name, kind)
    if found is not None:
        return found
    simple = name.rpartition(".")[2]
    near = get_close_matches(simple, [known for known in plugins if "." not in known], n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]}?" if near else ""
    listed = ", ".join(sorted({plugin.name.rpartition(".")[2] for plugin in plugins.values()}))
    raise ConfigError.of(setting, name[:200], f"Class {name[:200]} could not be found.{hint} There are {listed}.")


def other_kind(name: str) -> Plugin | None:
    """A built-in class of this name, of any kind."""
    return next((plugin for plugin in BUILT_IN if name in (plugin.name, *plugin.short_names)), None)


def listed_plugins(kind: PluginKind) -> list[Plugin]:
    """The built-in classes of a kind, by their names."""
    return sorted((plugin for plugin in BUILT_IN if kind in plugin.kinds), key=lambda plugin: plugin.name)


@lru_cache
def known_plugins(kind: PluginKind) -> Mapping[str, Plugin]:
    """The built-in classes of a kind by all of their names."""
    found: dict[str, Plugin] = {}
    for plugin in BUILT_IN:
        if kind in plugin.kinds:
            found |= dict.fromkeys((plugin.name, *plugin.short_names), plugin)
    return found


def _installed(setting: str, name: str, kind: PluginKind) -> Plugin | None:
    """A class of another package. The name of a transform of keys or values ends with $Key or $Value."""
    from importlib.metadata import entry_points

    base, _, side = name.partition("$")
    for entry in entry_points(group=_GROUPS.get(kind, _GROUPS[PluginKind.CONVERTER])):
        if entry.name not in (name, base):
            continue
        try:
            made = entry.load()
        except Exception as error:
            raise ConfigError(f"{setting}: the entry point {entry.name} cannot be loaded: {error}") from error
        make: Any = made
        if entry.name == base and side:
            if side not in (Side.KEY.value, Side.VALUE.value) or not issubclass(made, SidedTransformation):
                return None
            make = partial(made, Side(side))
        return Plugin(name, (kind,), made.config_def, make, _doc(made))
    return None
