"""Checks of dynamic configs of topics, brokers and groups, beyond the validation of each value.

The controller runs them before it stores a config: it refuses configs that this release does not support, and those
that contradict other settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from millbeck.kernel.config_providers import has_variable
from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.kernel.options import ConfigLayers, Update, resolve_value
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.security.kerberos_names import KerberosNames
from millbeck.security.sasl.jaas import parse_jaas
from millbeck.security.tls.principal_mapping import PrincipalMapping
from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS, SslOptions
from millbeck.server.config.broker_options import without_listener
from millbeck.server.config.consistency import check_consistent
from millbeck.server.config.refused import check_available, check_tls_available
from millbeck.server.config.sections.sasl import KerberosOptions, SaslOptions
from millbeck.server.config.sections.security import SecurityOptions
from millbeck.storage.config import LogConfig, check_log_config

_AT_START: Final = ("listeners", "listener.security.protocol.map")
_TLS_NAMES: Final = {declared.name: declared.update is Update.PER_BROKER for declared in SslOptions.options}
"""TLS options, and whether a running listener can change them."""


class ConfigChecks:
    """The checks of one node; ``static`` is its properties file, with which dynamic configs must be consistent."""

    def __init__(self, static: Mapping[str, str]) -> None:
        self._static = static
        self._bounds = {
            declared.name: _bounds_of(declared.synonyms[0].name) for declared in GROUP_OPTIONS if declared.synonyms
        }

    def check(self, resource: ConfigResource, options: Mapping[str, str], changed: Collection[str]) -> None:
        """Raise `InvalidConfig`, or `InvalidRequest` for broker configs, as Kafka's brokers do.

        Unsupported configs are checked only when they are set: one already stored does not block changes of others.
        """
        set_now = {name: text for name, text in options.items() if name in changed}
        if resource.type == ResourceType.TOPIC:
            check_available(set_now)
            check_log_config(LogConfig.resolve(ConfigLayers(overrides=options)))
        elif resource.type == ResourceType.GROUP:
            self._check_group(options)
        elif resource.type == ResourceType.BROKER:
            try:
                _check_broker(set_now)
                check_consistent({**self._static, **options})
            except InvalidConfig as error:
                raise InvalidRequest(error.message) from error

    def _check_group(self, options: Mapping[str, str]) -> None:
        """Check group configs against the bounds in the broker configs."""
        for name, text in options.items():
            smallest, largest = self._bounds.get(name, (None, None))
            value = GROUP_OPTIONS.parse(name, text)
            if smallest is not None and value < self._number(smallest):
                raise InvalidConfig(f"{name} must be greater than or equal to {smallest}")
            if largest is not None and value > self._number(largest):
                raise InvalidConfig(f"{name} must be less than or equal to {largest}")

    def _number(self, name: str) -> int:
        value: int = resolve_value(BROKER_OPTIONS[name], ConfigLayers(static=self._static))
        return value


def _names_plugin(base: str, text: str) -> bool:
    """Whether it names code of a deployment; Kafka's own handlers are known by name."""
    return base == SaslOptions.server_callback_handler_class.name and not text.startswith("org.apache.kafka.")


def _check_broker(options: Mapping[str, str]) -> None:
    for name, text in options.items():
        if name in BROKER_OPTIONS and BROKER_OPTIONS[name].sensitive and has_variable(text):
            raise InvalidConfig(
                f"{name}: variables of config providers are replaced in properties files only, not in dynamic configs"
            )
        base = without_listener(name)
        if name in _AT_START or base == SecurityOptions.principal_builder_class.name or _names_plugin(base, text):
            raise InvalidConfig(
                f"{name} cannot be changed dynamically: change it in the properties file and restart the node"
            )
        if base == SaslOptions.jaas_config.name:
            parse_jaas(options[name], name)
        if base == KerberosOptions.principal_to_local_rules.name:
            KerberosNames(KerberosOptions.principal_to_local_rules.parse(options[name]), "", name)
        if base not in _TLS_NAMES:
            continue
        if base == SslOptions.ssl_principal_mapping_rules.name:
            PrincipalMapping(options[name], name)
        if base == name:
            raise InvalidConfig(f"{name} can be changed per listener only: use listener.name.<listener>.{name}")
        if not _TLS_NAMES[base]:
            raise InvalidConfig(
                f"{name} cannot be changed dynamically: change it in the properties file and restart the node"
            )
    check_available(options)
    check_tls_available(options)
    if (
        "log.cleaner.threads" in options
        and BROKER_OPTIONS.parse("log.cleaner.threads", options["log.cleaner.threads"]) < 1
    ):
        raise InvalidConfig("log.cleaner.threads must be at least 1 while the node runs")


def _bounds_of(default: str) -> tuple[str | None, str | None]:
    """The broker options that bound the given group default: ``group.share.min.x`` and ``.max.x`` for
    ``group.share.x``."""
    group, kind, rest = default.split(".", 2)
    names = (f"{group}.{kind}.{side}.{rest.removeprefix('num.')}" for side in ("min", "max"))
    smallest, largest = (name if name in BROKER_OPTIONS else None for name in names)
    return smallest, largest
