"""Settings this release would have to ignore although somebody relies on them: refused by name, with what to do.

What is merely idle (replication on one node, quotas that nobody has set) is accepted, so that a file written for Kafka
works. What protects, or changes what is stored, is not: it must be left out until the release that does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.units import INT_MAX
from millbeck.server.config.broker_options import BROKER_OPTIONS, without_listener
from millbeck.server.config.sections.security import DEFAULT_PRINCIPAL_BUILDER
from millbeck.server.config.sections.tls import TLS_VERSIONS


class Refusal(NamedTuple):
    is_fine: Callable[[Any], bool]
    advice: str


def _is_unset(value: object) -> bool:
    return not value


_POLICY: Final = Refusal(_is_unset, "policies are not available in this release, leave it out")
REFUSED: Final = {
    "authorizer.class.name": Refusal(
        _is_unset, "authorization is not available in this release and everything would be allowed, leave it out"
    ),
    "principal.builder.class": Refusal(
        lambda value: value == DEFAULT_PRINCIPAL_BUILDER, "only the default is available in this release, leave it out"
    ),
    "create.topic.policy.class.name": _POLICY,
    "alter.config.policy.class.name": _POLICY,
    "client.quota.callback.class": Refusal(_is_unset, "quotas are not available in this release, leave it out"),
    "max.connection.creation.rate": Refusal(
        lambda value: value == INT_MAX,
        "connections are not limited by rate in this release, use max.connections or max.connections.per.ip",
    ),
    "config.providers": Refusal(
        _is_unset,
        "values are not looked up elsewhere in this release, write them down or set KAFKA_ environment variables",
    ),
    "cordoned.log.dirs": Refusal(_is_unset, "directories cannot be cordoned in this release, leave it out"),
    "remote.log.storage.system.enable": Refusal(
        _is_unset, "tiered storage is not available in this release, use false"
    ),
}
"""By option: which values are fine, and what to do about the others."""

_STORE: Final = Refusal(
    lambda value: value.upper() == "PEM",
    "only PEM is read in this release: convert the store, and use PEM",
)
_INLINE: Final = Refusal(
    _is_unset, "keys are read from files in this release: write it to a PEM file and use ssl.keystore.location"
)
REFUSED_WITH_TLS: Final = {
    "ssl.keystore.type": _STORE,
    "ssl.truststore.type": _STORE,
    "ssl.keystore.key": _INLINE,
    "ssl.keystore.certificate.chain": _INLINE,
    "ssl.cipher.suites": Refusal(
        _is_unset, "cipher suites cannot be chosen in this release, leave it out for those of the system"
    ),
    "ssl.engine.factory.class": Refusal(_is_unset, "TLS engines cannot be plugged in, leave it out"),
    "ssl.enabled.protocols": Refusal(
        lambda value: bool(value) and all(each in TLS_VERSIONS for each in value),
        f"the versions that can be spoken are {' and '.join(TLS_VERSIONS)}",
    ),
}
"""Only where there is an SSL listener: without one they are idle."""


def check_available(texts: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` for what this release refuses of a broker's settings."""
    _check(texts, REFUSED)


def check_tls_available(texts: Mapping[str, str]) -> None:
    """The same for the settings an SSL listener has, with or without a listener's prefix."""
    _check(texts, REFUSED_WITH_TLS)


def _check(texts: Mapping[str, str], refusals: Mapping[str, Refusal]) -> None:
    for name, text in texts.items():
        refusal = refusals.get(without_listener(name))
        if refusal is not None and not refusal.is_fine(BROKER_OPTIONS.parse(name, text)):
            raise InvalidConfig(f"{name}: {refusal.advice}")
