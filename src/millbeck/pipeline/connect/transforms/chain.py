"""The chain of transforms that a connector's configuration names: ``transforms=a,b``, ``transforms.a.type=...``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.config.definitions import LIST
from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.plugins import PluginKind, plugin_of
from millbeck.pipeline.connect.transforms.base import Predicate, Transformation

TRANSFORMS: Final = "transforms"
PREDICATES: Final = "predicates"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformationStage:
    """A transform, and for which records it is."""

    alias: str
    class_name: str
    transformation: Transformation
    predicate: Predicate | None = None
    is_negated: bool = False

    def is_for(self, record: ConnectRecord) -> bool:
        return self.predicate is None or self.predicate.test(record) is not self.is_negated

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """Raises `InvalidValue`."""
        return self.transformation.apply(record) if self.is_for(record) else record


def transformed(stages: tuple[TransformationStage, ...], record: ConnectRecord) -> ConnectRecord | None:
    """The record behind all stages; None when one of them drops it. Raises `InvalidValue`."""
    current: ConnectRecord | None = record
    for stage in stages:
        if current is None:
            return None
        current = stage.apply(current)
    return current


def stages_of(settings: Mapping[str, str]) -> tuple[TransformationStage, ...]:
    """The stages of a connector's configuration, in their order. Raises `ConfigError` for the first problem."""
    aliases = _aliases(settings, TRANSFORMS)
    known_predicates = _aliases(settings, PREDICATES)
    predicates: dict[str, Predicate] = {
        alias: _made(settings, PREDICATES, alias, PluginKind.PREDICATE)[1] for alias in known_predicates
    }
    stages: list[TransformationStage] = []
    for alias in aliases:
        prefix = f"{TRANSFORMS}.{alias}."
        name, transformation = _made(settings, TRANSFORMS, alias, PluginKind.TRANSFORMATION)
        predicate = settings.get(f"{prefix}predicate")
        if predicate is None and f"{prefix}negate" in settings:
            raise ConfigError(
                f"Config '{prefix}negate' was provided but there is no config '{prefix}predicate' defining a predicate"
                " to be negated."
            )
        if predicate is not None and predicate not in predicates:
            raise ConfigError.of(
                f"{prefix}predicate",
                predicate,
                f"no such predicate: set {PREDICATES}={','.join([*known_predicates, predicate])}"
                f" and {PREDICATES}.{predicate}.type",
            )
        stages.append(
            TransformationStage(
                alias=alias,
                class_name=name,
                transformation=transformation,
                predicate=None if predicate is None else predicates[predicate],
                is_negated=settings.get(f"{prefix}negate", "").strip().lower() == "true",
            )
        )
    return tuple(stages)


def _aliases(settings: Mapping[str, str], setting: str) -> tuple[str, ...]:
    aliases = tuple(alias for alias in LIST.parse(settings.get(setting, "")) if alias)
    if len(set(aliases)) < len(aliases):
        raise ConfigError.of(setting, f"[{', '.join(aliases)}]", "Duplicate alias provided.")
    return aliases


def _made(settings: Mapping[str, str], group: str, alias: str, kind: PluginKind) -> tuple[str, Any]:
    prefix = f"{group}.{alias}."
    name = settings.get(f"{prefix}type")
    if name is None:
        raise ConfigError(f'Missing required configuration "{prefix}type" which has no default value.')
    plugin = plugin_of(f"{prefix}type", name.strip(), kind)
    given = {key.removeprefix(prefix): text for key, text in settings.items() if key.startswith(prefix)}
    try:
        return plugin.name, plugin.make(plugin.config_def.parse(given))
    except ConfigError as error:
        raise ConfigError(f"{prefix}: {error}") from None
