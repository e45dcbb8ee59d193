"""The stricter profile of a node, ``millbeck.hardened=true`` or ``millbeck server --hardened``.

Kafka's defaults assume a trusted network. The profile has two parts: `HARDENED`, limits that replace Kafka's defaults
unless the node sets them itself, and rules for the settings, without which the node does not start. All violated rules
are reported together.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers, resolve_value
from millbeck.kernel.units import HOUR_MS, MIB
from millbeck.security.hosts import is_loopback
from millbeck.security.sasl.exchange import OAUTHBEARER, PLAIN
from millbeck.server.config.broker_options import BROKER_OPTIONS
from millbeck.server.config.sections.security import AuthorizerOptions, SecurityOptions

if TYPE_CHECKING:
    from millbeck.server.config.addresses import ListenerAddress
    from millbeck.server.config.listener_sasl import ListenerSasl
    from millbeck.server.config.node_config import NodeConfig
    from millbeck.server.config.sections.tls import SslOptions

HARDENED: Final[Mapping[str, str]] = {
    "max.connections": "10000",
    "max.connections.per.ip": "1000",
    "max.connection.creation.rate": "200",
    "queued.max.request.bytes": str(256 * MIB),
    "group.max.size": "1000",
    "group.consumer.max.size": "1000",
    "connections.max.reauth.ms": str(1 * HOUR_MS),
}
_NAME: Final = SecurityOptions.hardened.name


def is_hardened(texts: Mapping[str, str]) -> bool:
    return resolve_value(SecurityOptions.hardened, ConfigLayers(static=texts))


def hardened_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The settings with the stricter defaults added; settings that are present are unchanged."""
    return {**HARDENED, **texts}


def changed_by_profile(texts: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The defaults that the profile changes: name, new value, Kafka's default. ``texts`` are the settings before the
    profile is applied.
    """
    for name, text in HARDENED.items():
        if name not in texts:
            yield name, text, BROKER_OPTIONS[name].default_text or ""


def check_hardened(config: NodeConfig) -> None:
    """Raise `InvalidConfig` with all violations of the profile's rules."""
    broken = list(_broken(config))
    if broken:
        raise InvalidConfig(
            "\n".join([f"{_NAME}: this node's settings are not allowed by the stricter profile:", *broken])
        )


def check_mechanisms(listener: str, protocol: str, sasl: ListenerSasl) -> None:
    """Check the rules for the SASL mechanisms of one listener, also after dynamic changes. Raises `InvalidConfig`."""
    for reason in _broken_by_mechanisms(listener, protocol, sasl):
        raise InvalidConfig(f"{_NAME}: {reason}")


def check_tls(addresses: Iterable[ListenerAddress], listener: str, tls: SslOptions) -> None:
    """Check the rules for the TLS of one listener after dynamic changes. Raises `InvalidConfig`."""
    broken = list(_broken_by_names(listener, tls))
    for address in addresses:
        if address.name == listener and address.protocol == "SSL" and not address.is_loopback:
            broken += _broken_by_client_auth(listener, tls)
    if broken:
        raise InvalidConfig(f"{_NAME}: {broken[0]}")


def _broken(config: NodeConfig) -> Iterator[str]:
    for address in [*config.client_addresses(), *config.controller_addresses()]:
        if not address.is_loopback:
            yield from _broken_in_public(config, address.name, address.protocol)
        if address.has_sasl:
            yield from _broken_by_mechanisms(address.name, address.protocol, config.sasl(address.name))
        if address.is_encrypted:
            yield from _broken_by_names(address.name, config.ssl(address.name))
    if config.controller_names() and not config.controller_addresses():
        name, protocol = config.controllers_protocol()
        if protocol.endswith("SSL"):
            yield from _broken_by_names(name, config.ssl(name))
        if not protocol.endswith("SSL"):
            yield (
                f"listener.security.protocol.map: {name} is {protocol}: connections to controllers must be encrypted, "
                "use SSL or SASL_SSL"
            )
    if config.authorizer.allow_everyone_if_no_acl_found:
        yield f"{AuthorizerOptions.allow_everyone_if_no_acl_found.name} must be false"
    if config.authorizer.authorizer_dry_run:
        yield f"{AuthorizerOptions.authorizer_dry_run.name} must be false: nothing would be denied"


def _broken_by_names(name: str, tls: SslOptions) -> Iterator[str]:
    if tls.ssl_endpoint_identification_algorithm != "https":
        yield (
            f"listener.name.{name.lower()}.ssl.endpoint.identification.algorithm: must be https, or whoever has a "
            "trusted certificate can pose as another node"
        )


def _broken_by_client_auth(name: str, tls: SslOptions) -> Iterator[str]:
    if tls.ssl_client_auth != "required":
        yield (
            f"listener.name.{name.lower()}.ssl.client.auth: must be required, or whoever connects to {name} is "
            "anonymous; or use SASL_SSL"
        )


def _broken_in_public(config: NodeConfig, name: str, protocol: str) -> Iterator[str]:
    if protocol not in ("SSL", "SASL_SSL"):
        yield (
            f"listeners: {name} is {protocol}, and not on loopback: map it to SASL_SSL or SSL in "
            "listener.security.protocol.map, or bind it to localhost"
        )
    elif protocol == "SSL":
        yield from _broken_by_client_auth(name, config.ssl(name))


def _broken_by_mechanisms(listener: str, protocol: str, sasl: ListenerSasl) -> Iterator[str]:
    prefix = f"listener.name.{listener.lower()}"
    if PLAIN in sasl.mechanisms and protocol != "SASL_SSL":
        yield f"{prefix}.sasl.enabled.mechanisms: PLAIN sends passwords as they are: use SASL_SSL, or SCRAM-SHA-512"
    if OAUTHBEARER not in sasl.mechanisms:
        return
    oauth = sasl.mechanisms[OAUTHBEARER].oauth
    assert oauth is not None
    if oauth.keys is None:
        yield f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url is not set: unsecured tokens are not allowed"
        return
    location = oauth.keys.location
    if location.path is None and not location.is_encrypted and not is_loopback(location.host):
        yield f"{prefix}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url: must be an https: URL"
    if oauth.rules.issuer is None:
        yield f"{prefix}.oauthbearer.sasl.oauthbearer.expected.issuer must be set"
    if not oauth.rules.audiences:
        yield f"{prefix}.oauthbearer.sasl.oauthbearer.expected.audience must be set"
