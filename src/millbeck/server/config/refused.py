"""Settings that this release does not support and refuses, each with advice.

One list for the properties file, dynamic broker configs and topic configs. Settings that merely have no effect
(replication on one node, quotas that are not set) are accepted, so that a file written for Kafka works. Settings that
provide protection or change stored data are refused until a release supports them: ignoring them would break what the
user relies on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers, resolve_value
from millbeck.kernel.tls import TLS_VERSIONS
from millbeck.security.tls.cipher_suites import TLS_1_2
from millbeck.server.config.broker_options import BROKER_OPTIONS, LISTENER_PREFIX
from millbeck.server.config.removed import check_not_removed
from millbeck.storage.config import TOPIC_OPTIONS


class UnsupportedSetting(NamedTuple):
    is_fine: Callable[[Any], bool]
    advice: str


def _is_unset(value: object) -> bool:
    return not value


_TIERED: Final = UnsupportedSetting(_is_unset, "tiered storage is not available in this release: use false")
REFUSED: Final = {
    "config.providers": UnsupportedSetting(
        _is_unset,
        "config providers replace values in the properties file that names them, and nowhere else: remove it",
    ),
    "cordoned.log.dirs": UnsupportedSetting(_is_unset, "directories cannot be cordoned in this release: remove it"),
    "remote.log.storage.system.enable": _TIERED,
    "remote.storage.enable": _TIERED,
    "remote.log.copy.disable": _TIERED,
    "remote.log.delete.on.disable": _TIERED,
}
"""Unsupported settings of brokers and topics: the accepted values, and advice for the others."""

_STORE: Final = UnsupportedSetting(
    lambda value: value.upper() in ("PEM", "PKCS12", "JKS"), "supported formats are PEM, PKCS12 and JKS"
)
REFUSED_WITH_TLS: Final = {
    "ssl.keystore.type": _STORE,
    "ssl.truststore.type": _STORE,
    "ssl.cipher.suites": UnsupportedSetting(
        lambda value: all(name in TLS_1_2 for name in value),
        "only suites of TLS 1.2 can be chosen, by Java's names such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; those of "
        "TLS 1.3 are always enabled: leave them out, or set ssl.enabled.protocols=TLSv1.2",
    ),
    "ssl.engine.factory.class": UnsupportedSetting(_is_unset, "custom TLS engines are not available: remove it"),
    "ssl.enabled.protocols": UnsupportedSetting(
        lambda value: bool(value) and all(each in TLS_VERSIONS for each in value),
        f"supported versions are {' and '.join(TLS_VERSIONS)}",
    ),
}
"""Unsupported settings of SSL listeners; without an SSL listener they have no effect and are accepted."""


def check_available(texts: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` for settings that this release does not support or that Kafka 4 has removed."""
    check_not_removed(texts)
    _check(texts, REFUSED)


def check_tls_available(texts: Mapping[str, str]) -> None:
    """The same check for the TLS settings of an SSL listener, with or without a listener prefix."""
    _check(texts, REFUSED_WITH_TLS)


def _check(texts: Mapping[str, str], refusals: Mapping[str, UnsupportedSetting]) -> None:
    for name, text in texts.items():
        of_listener = LISTENER_PREFIX.fullmatch(name)
        base = name if of_listener is None else of_listener["rest"]
        refusal = refusals.get(base)
        if refusal is not None:
            options = BROKER_OPTIONS if base in BROKER_OPTIONS else TOPIC_OPTIONS
            given = {base: text}
            if not refusal.is_fine(resolve_value(options[base], ConfigLayers(overrides=given, static=given))):
                raise InvalidConfig(f"{name}: {refusal.advice}")
