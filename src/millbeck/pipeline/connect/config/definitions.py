"""Declarations of settings as Kafka Connect shows them: type, default, importance, group, order, width, validator.

`ConfigDef.parse` gives the values or raises for the first error; `ConfigDef.validate` gives every setting with all that
is wrong with it, which is what `PUT /connector-plugins/{name}/config/validate` answers. Messages are Kafka's: people
search for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from millbeck.kernel.config_providers import has_variable
from millbeck.kernel.option_kinds import BOOLEAN, CLASS, DOUBLE, INT, LIST, LONG, PASSWORD, SHORT, STRING, OptionKind
from millbeck.pipeline.connect.errors import ConfigError

__all__ = [
    "BOOLEAN",
    "CLASS",
    "DOUBLE",
    "INT",
    "LIST",
    "LONG",
    "PASSWORD",
    "REQUIRED",
    "SHORT",
    "STRING",
    "Check",
    "ConfigDef",
    "ConfigKey",
    "ConfigValue",
    "Importance",
    "Width",
]


class _Required(Enum):
    REQUIRED = "required"


REQUIRED: Final = _Required.REQUIRED
"""Used as a default: the setting has no default and must be given."""


class Importance(Enum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(Enum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


@dataclass(frozen=True, slots=True)
class Check:
    """A test of a parsed value: ``problem`` returns what is wrong with it, or None; ``allowed`` says it for docs.

    With ``is_whole_message`` nothing is put before the problem, and ``{name}`` in it stands for the setting.
    """

    problem: Callable[[Any], str | None]
    allowed: str
    is_whole_message: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """One declared setting."""

    name: str
    kind: OptionKind[Any]
    default: Any = REQUIRED
    check: Check | None = None
    importance: Importance = Importance.MEDIUM
    doc: str
    group: str | None = None
    order: int = -1
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    internal: bool = False
    shown_name: str | None = None
    """The name in messages of checks, when it differs: a class's own settings are known to it without their prefix."""

    def parse(self, given: str | None) -> Any:
        """The value of a text. Raises `ConfigError`."""
        value = self.convert(given)
        self.check_value(value)
        return value

    def check_value(self, value: Any) -> None:
        """Raises `ConfigError` for a value that is not allowed."""
        problem = None if self.check is None else self.check.problem(value)
        if self.check is None or problem is None:
            return
        if self.check.is_whole_message:
            raise ConfigError(problem.replace("{name}", self.shown_name or self.name))
        raise self.refusal(value, problem, self.shown_name)

    def convert(self, given: str | None) -> Any:
        """Like `parse`, without the check."""
        if given is None:
            return None
        try:
            return self.kind.parse(given)
        except ValueError:
            raise self.refusal(
                given.strip(), _UNREADABLE.get(self.kind, f"Not a number of type {_name(self.kind)}")
            ) from None

    def refusal(self, value: object, problem: str, shown_name: str | None = None) -> ConfigError:
        name = shown_name or self.name
        if self.kind is PASSWORD:
            return ConfigError.of(name, "[hidden]", problem)
        if isinstance(value, tuple):
            value = f"[{', '.join(map(str, value))}]"
        return ConfigError.of(name, "null" if value is None else value, problem)

    def text(self, value: object) -> str | None:
        """The text of a value in answers; passwords are hidden."""
        return None if value is None else self.kind.text(value)

    @property
    def default_text(self) -> str | None:
        return None if self.default is REQUIRED else self.text(self.default)

    def description(self) -> dict[str, Any]:
        """The declaration as answers of the REST interface have it."""
        return {
            "name": self.name,
            "type": _name(self.kind),
            "required": self.default is REQUIRED,
            "default_value": self.default_text,
            "importance": self.importance.value,
            "documentation": self.doc,
            "group": self.group,
            "width": self.width.value,
            "display_name": self.display_name or self.name,
            "dependents": list(self.dependents),
            "order_in_group": self.order,
        }


_UNREADABLE: Final[Mapping[OptionKind[Any], str]] = {BOOLEAN: "Expected value to be either true or false"}


def _name(kind: OptionKind[Any]) -> str:
    return kind.name.upper()


@dataclass(slots=True, kw_only=True)
class ConfigValue:
    """A setting as given, with everything that is wrong with it."""

    name: str
    value: str | None = None
    recommended: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    visible: bool = True

    def description(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "recommended_values": self.recommended,
            "errors": self.errors,
            "visible": self.visible,
        }


class ConfigDef:
    """The declared settings of one class, in their order."""

    def __init__(self, *keys: ConfigKey) -> None:
        self._keys: dict[str, ConfigKey] = {}
        for key in keys:
            assert key.name not in self._keys, f"{key.name} is declared twice"
            assert key.default is REQUIRED or key.check is None or key.check.problem(key.default) is None, key.name
            self._keys[key.name] = key

    def __iter__(self) -> Iterator[ConfigKey]:
        return iter(self._keys.values())

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __getitem__(self, name: str) -> ConfigKey:
        return self._keys[name]

    def joined(self, others: Iterable[ConfigKey]) -> ConfigDef:
        """These settings followed by others; a setting declared again replaces the first declaration."""
        return ConfigDef(*(self._keys | {key.name: key for key in others}).values())

    def parse(self, settings: Mapping[str, str | None]) -> dict[str, Any]:
        """The values of all settings by name; unknown ones are left out. Raises `ConfigError` for the first problem."""
        values: dict[str, Any] = {}
        for key in self:
            if key.name in settings:
                values[key.name] = key.parse(settings[key.name])
            elif key.default is REQUIRED:
                raise ConfigError(f'Missing required configuration "{key.name}" which has no default value.')
            else:
                values[key.name] = key.default
        return values

    def validate(self, settings: Mapping[str, str | None]) -> list[ConfigValue]:
        """Every declared setting with its errors."""
        return [self._validated(key, settings) for key in self]

    @staticmethod
    def _validated(key: ConfigKey, settings: Mapping[str, str | None]) -> ConfigValue:
        found = ConfigValue(name=key.name, recommended=list(key.recommended))
        if key.name not in settings:
            if key.default is REQUIRED:
                found.errors.append(f'Missing required configuration "{key.name}" which has no default value.')
            else:
                found.value = key.default_text
            return found
        if has_variable(settings[key.name] or ""):
            # Only the worker knows what a config provider has there.
            found.value = settings[key.name]
            return found
        value = None
        try:
            value = key.convert(settings[key.name])
            found.value = key.text(value)
        except ConfigError as error:
            found.errors.append(str(error))
        try:
            key.check_value(value)
        except ConfigError as error:
            found.errors.append(str(error))
        return found
