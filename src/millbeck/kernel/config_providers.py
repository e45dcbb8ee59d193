"""Config providers: variables in a properties file, such as ``${file:/etc/secrets.properties:password}``.

Kafka's three providers are available, under the names of their classes, if ``config.providers`` in the same file
enables them. They replace variables only in files that are read at start, never in settings from the network
(CVE-2024-31141), so that only the author of the file decides what is read. A variable without a value is an error;
otherwise its own text would become a password that anyone can guess.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.option_kinds import ProvidedText
from millbeck.kernel.properties import parse_properties

CONFIG_PROVIDERS: Final = "config.providers"
_PACKAGE: Final = "org.apache.kafka.common.config.provider"
FILE_PROVIDER: Final = f"{_PACKAGE}.FileConfigProvider"
DIRECTORY_PROVIDER: Final = f"{_PACKAGE}.DirectoryConfigProvider"
ENVIRONMENT_PROVIDER: Final = f"{_PACKAGE}.EnvVarConfigProvider"
_CLASSES: Final = (FILE_PROVIDER, DIRECTORY_PROVIDER, ENVIRONMENT_PROVIDER)
_ALLOWED_PATHS: Final = "allowed.paths"
_ALLOWED_NAMES: Final = "allowlist.pattern"
_VARIABLE: Final = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")

ReadText = Callable[[str], str]
"""Returns the content of a small file; raises ``OSError`` or ``UnicodeDecodeError``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    name: str
    class_name: str
    allowed_paths: tuple[str, ...] | None = None
    allowed_names: re.Pattern[str] | None = None


def without_providers(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings other than those of the providers."""
    return {
        name: text
        for name, text in settings.items()
        if name != CONFIG_PROVIDERS and not name.startswith(f"{CONFIG_PROVIDERS}.")
    }


def has_variable(text: str) -> bool:
    return _VARIABLE.search(text) is not None


def resolved_settings(
    settings: Mapping[str, str], *, read_text: ReadText, environment: Mapping[str, str]
) -> dict[str, str]:
    """The settings of one file with variables replaced by their values (as `ProvidedText`), and without the providers'
    settings. Raises `InvalidConfig`."""
    providers = _providers(settings)
    if not providers:
        return dict(settings)
    lookup = _Lookup(providers, read_text, environment)
    return {name: lookup.replaced(name, text) for name, text in without_providers(settings).items()}


def _providers(settings: Mapping[str, str]) -> dict[str, _Provider]:
    found: dict[str, _Provider] = {}
    for name in (each.strip() for each in settings.get(CONFIG_PROVIDERS, "").split(",")):
        if not name:
            continue
        prefix = f"{CONFIG_PROVIDERS}.{name}"
        class_name = full_name(settings.get(f"{prefix}.class", "").strip(), _CLASSES)
        if class_name not in _CLASSES:
            raise InvalidConfig(
                f"{prefix}.class: {class_name[:200] or 'not set'}: one of {', '.join(_CLASSES)} is needed"
            )
        found[name] = _Provider(
            name=name,
            class_name=class_name,
            allowed_paths=_allowed_paths(settings, f"{prefix}.param.{_ALLOWED_PATHS}"),
            allowed_names=_allowed_names(settings, f"{prefix}.param.{_ALLOWED_NAMES}"),
        )
    return found


def _allowed_paths(settings: Mapping[str, str], setting: str) -> tuple[str, ...] | None:
    given = settings.get(setting, "").strip()
    if not given:
        return None
    paths = tuple(posixpath.normpath(path.strip()) for path in given.split(","))
    for path in paths:
        if not path.startswith("/"):
            raise InvalidConfig(f"{setting}: {path[:200]} is not an absolute path")
    return paths


def _allowed_names(settings: Mapping[str, str], setting: str) -> re.Pattern[str] | None:
    given = settings.get(setting)
    if given is None:
        return None
    try:
        return re.compile(given)
    except re.error as error:
        raise InvalidConfig(f"{setting}: not a regular expression: {error}") from None


class _Lookup:
    def __init__(self, providers: Mapping[str, _Provider], read_text: ReadText, environment: Mapping[str, str]) -> None:
        self._providers = providers
        self._read_text = read_text
        self._environment = environment
        self._files: dict[str, dict[str, str]] = {}

    def replaced(self, setting: str, text: str) -> str:
        is_replaced = False

        def value(match: re.Match[str]) -> str:
            nonlocal is_replaced
            provider = self._providers.get(match[1])
            if provider is None:
                # It may have another meaning: other software has variables of this form.
                return match[0]
            is_replaced = True
            return self._value(setting, provider, match[2] or "", match[3])

        replaced = _VARIABLE.sub(value, text)
        return ProvidedText(replaced) if is_replaced else text

    def _value(self, setting: str, provider: _Provider, path: str, key: str) -> str:
        shown = f"{setting}: ${{{provider.name}:{f'{path}:' if path else ''}{key}}}"
        if provider.class_name == ENVIRONMENT_PROVIDER:
            return self._of_environment(shown, provider, path, key)
        if not path or not key:
            raise InvalidConfig(f"{shown}: a path and a key are needed, as ${{{provider.name}:path:key}}")
        path = self._allowed(shown, provider, path)
        try:
            if provider.class_name == DIRECTORY_PROVIDER:
                if "/" in key or key in (".", ".."):
                    raise InvalidConfig(f"{shown}: the name of a file in {path} is needed")
                return self._read_text(posixpath.join(path, key))
            if path not in self._files:
                self._files[path] = parse_properties(self._read_text(path))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise InvalidConfig(f"{shown} cannot be read: {reason or type(error).__name__}") from None
        found = self._files[path].get(key)
        if found is None:
            raise InvalidConfig(f"{shown}: the file has no such key")
        return found

    def _of_environment(self, shown: str, provider: _Provider, path: str, name: str) -> str:
        if path:
            raise InvalidConfig(f"{shown}: a variable of the environment has no path")
        if provider.allowed_names is not None and provider.allowed_names.fullmatch(name) is None:
            raise InvalidConfig(f"{shown}: {_ALLOWED_NAMES} does not allow this name")
        value = self._environment.get(name)
        if value is None:
            raise InvalidConfig(f"{shown}: the environment has no such variable")
        return value

    @staticmethod
    def _allowed(shown: str, provider: _Provider, path: str) -> str:
        if provider.allowed_paths is None:
            return path
        normal = posixpath.normpath(path)
        for allowed in provider.allowed_paths:
            if normal == allowed or normal.startswith(f"{allowed.rstrip('/')}/"):
                return normal
        raise InvalidConfig(f"{shown}: {_ALLOWED_PATHS} does not allow this path")
