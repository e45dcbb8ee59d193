"""Settings of topics, brokers and groups that are refused although each value alone is allowed.

The controller asks before it stores anything: what this release would store and not honour is refused by name, and so
is what contradicts other settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.kernel.options import Layers, resolve_value
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS, SslOptions
from millbeck.server.config.broker_options import without_listener
from millbeck.server.config.consistency import check_consistent
from millbeck.server.config.refused import check_available, check_tls_available
from millbeck.storage.config import LogConfig, check_log_config

_AT_START: Final = ("listeners", "listener.security.protocol.map")
_RENEWABLE: Final = ("ssl.keystore.location", "ssl.keystore.password", "ssl.keystore.type", "ssl.key.password")
"""Of a listener's TLS options, those that a running listener takes over: its certificate and key."""
_TLS_NAMES: Final = tuple(declared.name for declared in SslOptions.options)
_REMOTE: Final = (
    LogConfig.remote_storage_enable,
    LogConfig.remote_log_copy_disable,
    LogConfig.remote_log_delete_on_disable,
)


class ConfigChecks:
    """The checks of one node; ``static`` is its server file, with which dynamic settings must agree."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self._static = static
        self._bounds = {
            declared.name: _bounds_of(declared.synonyms[0].name) for declared in GROUP_OPTIONS if declared.synonyms
        }

    def check(self, resource: ConfigResource, options: Mapping[str, str]) -> None:
        """Raise `InvalidConfig`, or `InvalidRequest` as Kafka's brokers do for their own settings."""
        if resource.type == ResourceType.TOPIC:
            _check_topic(options)
        elif resource.type == ResourceType.GROUP:
            self._check_group(options)
        elif resource.type == ResourceType.BROKER:
            try:
                _check_broker(options)
                check_consistent({**self._static, **options})
            except InvalidConfig as error:
                raise InvalidRequest(error.message) from error

    def _check_group(self, options: Mapping[str, str]) -> None:
        """A group stays within the bounds its broker sets."""
        for name, text in options.items():
            smallest, largest = self._bounds.get(name, (None, None))
            value = GROUP_OPTIONS.parse(name, text)
            if smallest is not None and value < self._number(smallest):
                raise InvalidConfig(f"{name} must be greater than or equal to {smallest}")
            if largest is not None and value > self._number(largest):
                raise InvalidConfig(f"{name} must be less than or equal to {largest}")

    def _number(self, name: str) -> int:
        value: int = resolve_value(BROKER_OPTIONS[name], Layers(static=self._static))
        return value


def _check_topic(options: Mapping[str, str]) -> None:
    config = LogConfig.resolve(Layers(overrides=options))
    for flag in _REMOTE:
        if getattr(config, flag.attribute):
            raise InvalidConfig(f"{flag.name}: tiered storage is not available in this release, use false")
    check_log_config(config)


def _check_broker(options: Mapping[str, str]) -> None:
    for name in options:
        if name in _AT_START:
            raise InvalidConfig(f"{name} is read when a node starts: change it in the server's file")
        base = without_listener(name)
        if base not in _TLS_NAMES:
            continue
        if base == name:
            raise InvalidConfig(f"{name} can be changed for one listener only: use listener.name.<listener>.{name}")
        if base not in _RENEWABLE:
            raise InvalidConfig(f"{name} is read when a node starts: change it in the server's file")
    check_available(options)
    check_tls_available(options)
    if (
        "log.cleaner.threads" in options
        and BROKER_OPTIONS.parse("log.cleaner.threads", options["log.cleaner.threads"]) < 1
    ):
        raise InvalidConfig("log.cleaner.threads must be at least 1 while the node runs")


def _bounds_of(default: str) -> tuple[str | None, str | None]:
    """The broker's options that bound the one with a group's default: ``group.share.min.x`` for ``group.share.x``."""
    group, kind, rest = default.split(".", 2)
    names = (f"{group}.{kind}.{side}.{rest.removeprefix('num.')}" for side in ("min", "max"))
    smallest, largest = (name if name in BROKER_OPTIONS else None for name in names)
    return smallest, largest
