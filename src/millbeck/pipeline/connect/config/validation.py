"""The check of a connector's whole configuration: every setting, with every error at its key.

Settings of the connector's converters, transforms and predicates are those of their classes, under the prefix of the
setting that names the class. What Kafka Connect accepts and fails on later is an error here: a transform with a
predicate that is not defined, a class that refuses its settings. A value with a variable of a config provider, such as
``${env:TASKS}``, is known to the worker alone and passes every check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from millbeck import __version__
from millbeck.kernel.config_providers import has_variable
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import OptionSet
from millbeck.pipeline.connect.config.connector_options import (
    SINK_OPTIONS,
    SOURCE_OPTIONS,
    common_options,
    plugin_version,
)
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    CLASS,
    LIST,
    STRING,
    ConfigDef,
    ConfigKey,
    ConfigValue,
    Importance,
    Width,
)
from millbeck.pipeline.connect.connectors.declared import ConnectorClass, ConnectorKind, connector_of
from millbeck.pipeline.connect.errors import ConfigError, ConnectError
from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled
from millbeck.pipeline.connect.plugins import Plugin, PluginKind, listed_plugins, other_kind, plugin_of

Settings = Mapping[str, str | None]

CONVERTERS: Final = {
    "header.converter": PluginKind.HEADER_CONVERTER,
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
}
DEFAULT_CONVERTERS: Final = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "header.converter": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}
_CHAINS: Final = (
    ("transforms", "Transformation", PluginKind.TRANSFORMATION),
    ("predicates", "Predicate", PluginKind.PREDICATE),
)
_INTERFACES: Final = {
    PluginKind.CONVERTER: "Converter",
    PluginKind.HEADER_CONVERTER: "HeaderConverter",
    PluginKind.TRANSFORMATION: "Transformation",
    PluginKind.PREDICATE: "Predicate",
}
_OVERRIDES: Final = ("producer.override.", "consumer.override.", "admin.override.")
_STAGES_MAX: Final = 3
_NULL: Final = "Null value can not be supplied as the configuration value."


@dataclass(slots=True)
class Entry:
    """A setting: its declaration and its value. A setting that no class declares has no declaration."""

    key: ConfigKey | None
    value: ConfigValue


@dataclass(slots=True)
class Validation:
    """The result of a check. ``advice`` are warnings: the connector would run."""

    name: str
    kind: ConnectorKind
    groups: list[str] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        return [error for entry in self.entries for error in entry.value.errors]

    def entry(self, name: str) -> Entry:
        """The entry of a setting; it is created if the setting has no declaration."""
        for entry in self.entries:
            if entry.value.name == name:
                return entry
        self.entries.append(Entry(None, ConfigValue(name=name)))
        return self.entries[-1]

    def description(self) -> dict[str, Any]:
        """The answer to ``PUT /connector-plugins/{name}/config/validate``."""
        return {
            "name": self.name,
            "error_count": len(self.errors),
            "groups": self.groups,
            "configs": [
                {
                    "definition": None if entry.key is None else entry.key.description(),
                    "value": entry.value.description(),
                }
                for entry in self.entries
            ],
        }


def validated(settings: Settings, defaults: Mapping[str, str] = DEFAULT_CONVERTERS) -> Validation:
    """Check a configuration. ``defaults`` are the worker's converters. Raises `ConfigError` without a connector class,
    or with an unknown one.
    """
    name = settings.get("connector.class")
    if name is None:
        raise ConfigError("Connector config contains no connector type: set connector.class")
    connector = connector_of(name.strip())
    found = Validation(name, connector.kind)
    base = _base(connector, settings, defaults)
    chains = list(_chain_keys(settings))
    _add(found, base, settings)
    for group in dict.fromkeys(key.group for key in (*base, *chains) if key.group is not None):
        found.groups.append(group)
    _add(found, ConfigDef(*chains), settings)
    _add(found, connector.config_def, settings)
    _check_together(found, connector, settings)
    _check_classes(found, settings)
    _check_chains(found, settings)
    if connector.kind is ConnectorKind.SINK:
        _check_topics(found, settings)
    else:
        _check_source(found, connector, settings)
    for setting, text in settings.items():
        if text is None:
            found.entry(setting).value.errors.append(_NULL)
    _add_converters(found, settings)
    _add_overrides(found, settings)
    found.advice.extend(_advice(settings, found))
    return found


def has_variables(settings: Settings, prefix: str) -> bool:
    """Whether a setting with this prefix has a variable of a config provider, whose value is not known here."""
    return any(name.startswith(prefix) and has_variable(text or "") for name, text in settings.items())


def _add(found: Validation, declared: ConfigDef, settings: Settings) -> None:
    values = declared.validate(settings)
    found.entries.extend(Entry(key, value) for key, value in zip(declared, values, strict=True))


def _check_together(found: Validation, connector: ConnectorClass, settings: Settings) -> None:
    """Check what only all settings of the class together tell, if each of them is valid and known."""
    own = {key.name for key in connector.config_def}
    if any(
        entry.value.errors or has_variable(settings.get(entry.value.name) or "")
        for entry in found.entries
        if entry.value.name in own
    ):
        return
    for setting, problem in connector.problems(connector.config_def.parse(settings)):
        found.entry(setting).value.errors.append(problem)


def _base(connector: ConnectorClass, settings: Settings, defaults: Mapping[str, str]) -> ConfigDef:
    versions: dict[str, str | None] = {"connector.class": connector.version}
    for setting, kind in CONVERTERS.items():
        versions[setting] = (
            None if _plugin(setting, settings.get(setting, defaults[setting]), kind) is None else __version__
        )
    options = SINK_OPTIONS if connector.kind is ConnectorKind.SINK else SOURCE_OPTIONS
    base = common_options(versions, defaults).joined(options)
    keys = [
        replace(key, recommended=tuple(plugin.name for plugin in listed_plugins(CONVERTERS[key.name])))
        if key.name in CONVERTERS
        else key
        for key in base
    ]
    return ConfigDef(*keys)


def _plugin(setting: str, name: str | None, kind: PluginKind) -> Plugin | None:
    try:
        return None if name is None else plugin_of(setting, name.strip(), kind)
    except ConfigError:
        return None


def _aliases(settings: Settings, chain: str) -> list[str]:
    return [alias for alias in dict.fromkeys(LIST.parse(settings.get(chain) or "")) if alias]


def _chain_keys(settings: Settings) -> Iterator[ConfigKey]:
    """The declared settings of the configured transforms and predicates."""
    for chain, word, kind in _CHAINS:
        for alias in _aliases(settings, chain):
            prefix, group = f"{chain}.{alias}.", f"{chain.capitalize()}: {alias}"
            plugin = _plugin(f"{prefix}type", settings.get(f"{prefix}type"), kind)
            yield ConfigKey(
                name=f"{prefix}type",
                kind=CLASS,
                importance=Importance.HIGH,
                doc=f"The class of the {word.lower()} {alias}.",
                group=group,
                order=0,
                width=Width.LONG,
                display_name=f"{word} type for {alias}",
                recommended=tuple(each.name for each in listed_plugins(kind)),
            )
            version = plugin_version(
                f"{prefix}plugin.version",
                1,
                Width.LONG,
                f"{word} version for {alias}",
                None if plugin is None else __version__,
                group,
            )
            yield replace(version, importance=Importance.HIGH)
            own = [] if kind is PluginKind.PREDICATE else [*_STAGE_KEYS]
            own += [] if plugin is None else list(plugin.config_def)
            if plugin is not None:
                yield from _embedded(prefix, group, own)


_STAGE_KEYS: Final = (
    ConfigKey(
        name="predicate",
        kind=STRING,
        default=None,
        doc="The name of the predicate of the records that this transform is for.",
    ),
    ConfigKey(
        name="negate",
        kind=BOOLEAN,
        default=False,
        doc="Whether the transform is for the records that the predicate is not true for.",
    ),
)


def _embedded(prefix: str, group: str, keys: list[ConfigKey]) -> Iterator[ConfigKey]:
    """The settings of a class under a prefix; its messages name them without the prefix."""
    for order, key in enumerate(keys, start=2):
        yield replace(
            key,
            name=f"{prefix}{key.name}",
            shown_name=key.name,
            group=group if key.group is None else f"{group}: {key.group}",
            order=order,
            display_name=key.display_name or key.name,
        )


def _check_classes(found: Validation, settings: Settings) -> None:
    """Check that every configured class exists."""
    named = [(setting, kind) for setting, kind in CONVERTERS.items()]
    for chain, _, kind in _CHAINS:
        named += [(f"{chain}.{alias}.type", kind) for alias in _aliases(settings, chain)]
    for setting, kind in named:
        name = settings.get(setting)
        if name is None or has_variable(name):
            continue
        value = found.entry(setting).value
        try:
            value.value = plugin_of(setting, name.strip(), kind).name
        except ConfigError as error:
            other = other_kind(name.strip())
            value.value = None if other is None else other.name
            word = _INTERFACES[kind]
            value.errors.append(
                str(error) if other is None else f"Class class {other.name} does not implement the {word} interface"
            )


def _check_chains(found: Validation, settings: Settings) -> None:
    """Check that predicates are defined, and that classes accept their settings."""
    predicates = _aliases(settings, "predicates")
    for chain, _, kind in _CHAINS:
        for alias in _aliases(settings, chain):
            prefix = f"{chain}.{alias}."
            predicate = settings.get(f"{prefix}predicate")
            if kind is PluginKind.TRANSFORMATION and predicate is None and f"{prefix}negate" in settings:
                found.entry(f"{prefix}type").value.errors.append(
                    f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a"
                    " predicate to be negated."
                )
            if predicate is not None and has_variables(settings, "predicates"):
                predicate = None
            if kind is PluginKind.TRANSFORMATION and predicate is not None and predicate.strip() not in predicates:
                wanted = ",".join([*predicates, predicate.strip()])
                found.entry(f"{prefix}predicate").value.errors.append(
                    f"Invalid value {predicate} for configuration {prefix}predicate: no such predicate: set"
                    f" predicates={wanted} and predicates.{predicate.strip()}.type"
                )
            _check_settings(found, settings, prefix, kind)


def _check_settings(found: Validation, settings: Settings, prefix: str, kind: PluginKind) -> None:
    plugin = _plugin(f"{prefix}type", settings.get(f"{prefix}type"), kind)
    is_wrong = any(entry.value.errors for entry in found.entries if entry.value.name.startswith(prefix))
    if plugin is None or is_wrong or has_variables(settings, prefix):
        return
    given = {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix) and text}
    try:
        plugin.make(plugin.config_def.parse(given))
    except ConnectError as error:
        found.entry(f"{prefix}type").value.errors.append(str(error))


def _check_topics(found: Validation, settings: Settings) -> None:
    if has_variables(settings, "topics") or has_variables(settings, "errors.deadletterqueue.topic.name"):
        return
    topics, pattern = (settings.get("topics") or "").strip(), (settings.get("topics.regex") or "").strip()
    dead_letters = (settings.get("errors.deadletterqueue.topic.name") or "").strip()
    if bool(topics) == bool(pattern):
        problem = (
            "topics and topics.regex are mutually exclusive options, but both are set."
            if topics
            else "Must configure one of topics or topics.regex"
        )
        for setting in ("topics", "topics.regex"):
            found.entry(setting).value.errors.append(problem)
    listed = [topic for topic in LIST.parse(topics) if topic]
    if dead_letters and dead_letters in listed:
        found.entry("topics").value.errors.append(
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics"
            f" ('topics=[{', '.join(listed)}]') consumed by the connector"
        )
    if dead_letters and pattern:
        try:
            matches = compiled(pattern).fullmatch(dead_letters) is not None
        except PatternError:
            return
        if matches:
            found.entry("topics.regex").value.errors.append(
                f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics"
                f" ('topics.regex={pattern}') consumed by the connector"
            )


def _check_source(found: Validation, connector: ConnectorClass, settings: Settings) -> None:
    boundary = (settings.get("transaction.boundary") or "").strip().upper()
    if boundary == "CONNECTOR" and not connector.has_own_transactions:
        found.entry("transaction.boundary").value.errors.append(
            "The connector does not support connector-defined transaction boundaries with the given configuration. "
            "Please reconfigure it to use a different transaction boundary definition."
        )
    required = (settings.get("exactly.once.support") or "").strip().upper() == "REQUIRED"
    if required and not connector.is_exactly_once:
        found.entry("exactly.once.support").value.errors.append(
            "The connector does not support exactly-once semantics with the provided configuration."
        )


def _add_converters(found: Validation, settings: Settings) -> None:
    """Add the settings of converters that the connector overrides."""
    for setting, kind in CONVERTERS.items():
        plugin = _plugin(setting, settings.get(setting), kind)
        if plugin is None:
            continue
        prefix = f"{setting}."
        given = {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
        given.setdefault("converter.type", setting.partition(".")[0])
        values = plugin.config_def.validate(given)
        found.groups.extend(
            group
            for group in dict.fromkeys(key.group for key in plugin.config_def)
            if group and group not in found.groups
        )
        for key, value in zip(plugin.config_def, values, strict=True):
            value.name = f"{prefix}{value.name}"
            found.entries.append(Entry(replace(key, name=value.name, display_name=key.display_name or key.name), value))
        if any(value.errors for value in values) or has_variables(settings, prefix):
            continue
        try:
            plugin.make({name: text for name, text in given.items() if text is not None})
        except ConnectError as error:
            found.entry(setting).value.errors.append(str(error))


def _add_overrides(found: Validation, settings: Settings) -> None:
    """Settings of the connector's own clients."""
    for setting, text in settings.items():
        prefix = next((each for each in _OVERRIDES if setting.startswith(each)), None)
        if prefix is None:
            continue
        name = setting.removeprefix(prefix)
        value = ConfigValue(name=setting, value=text)
        key = ConfigKey(name=setting, kind=STRING, default=text, doc="A setting of the connector's own client.")
        found.entries.append(Entry(replace(key, display_name=name), value))
        if has_variable(text or ""):
            continue
        try:
            _client_options(prefix).parse(name, text or "")
        except InvalidConfig as error:
            value.errors.append(str(error))


@cache
def _client_options(prefix: str) -> OptionSet:
    """What a client can be set to. The clients are imported only here: most connectors override nothing."""
    from millbeck.client.config import ClientConfig
    from millbeck.client.consumer.config import ConsumerConfig
    from millbeck.client.producer.config import ProducerConfig

    sections = dict(zip(_OVERRIDES, (ProducerConfig, ConsumerConfig, ClientConfig), strict=True))
    return OptionSet(sections[prefix])


def _advice(settings: Settings, found: Validation) -> Iterator[str]:
    """Warnings: valid settings that are probably not what was meant."""
    transforms = _aliases(settings, "transforms")
    if len(transforms) > _STAGES_MAX:
        yield f"transforms: {len(transforms)} transforms in a row are hard to follow: a topology says it more clearly"
    for predicate in _aliases(settings, "predicates"):
        if not any(settings.get(f"transforms.{alias}.predicate") == predicate for alias in transforms):
            yield f"predicates.{predicate}: no transform uses it"
    known = {entry.value.name for entry in found.entries if entry.key is not None}
    prefixes = (*_OVERRIDES, "topic.creation.", "millbeck.")
    for setting in settings:
        if setting not in known and not setting.startswith((*prefixes, *(f"{name}." for name in CONVERTERS))):
            yield f"{setting}: no such setting; it has no effect"
