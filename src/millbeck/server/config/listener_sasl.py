"""The SASL settings of one listener: its mechanisms, and the settings of each.

A setting for one mechanism of one listener precedes one for the listener, which precedes the general one:
``listener.name.<listener>.<mechanism>.<setting>``, ``listener.name.<listener>.<setting>``, ``<setting>``, with listener
and mechanism in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.kerberos import KerberosLogin
from millbeck.kernel.options import ConfigLayers, Option, resolve_value
from millbeck.security.sasl.exchange import GSSAPI, OAUTHBEARER, PLAIN
from millbeck.security.sasl.jaas import LOGIN_MODULES, JaasEntry, parse_jaas, plain_users
from millbeck.server.config.broker_options import listener_key
from millbeck.server.config.sections.sasl import KerberosOptions, SaslOptions
from millbeck.server.config.sections.sockets import SocketOptions

if TYPE_CHECKING:
    from millbeck.client.oauth.settings import TokenSettings
    from millbeck.server.config.listener_oauth import OauthSettings


PLAIN_HANDLER: Final = "org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler"
"""Kafka's default, which has the users of the JAAS configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MechanismSettings:
    name: str
    jaas: JaasEntry | None
    jaas_setting: str
    """The name of the JAAS setting, for messages."""
    reauthenticate_ms: int
    verifies_with_scram: bool = False
    """PLAIN: passwords are checked against the users' SCRAM credentials."""
    checked_by: tuple[str, str] | None = None
    """PLAIN: the setting that names the plugin that checks passwords, and the plugin's name."""
    oauth: OauthSettings | None = None
    """OAUTHBEARER: which tokens are accepted; None for a node's own logins."""
    tokens: TokenSettings | None = None
    """OAUTHBEARER: the source of a node's own tokens; None on a listener."""
    kerberos: KerberosSettings | None = None
    """GSSAPI: the credentials of the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosSettings:
    login: KerberosLogin
    rules: tuple[str, ...]
    """``sasl.kerberos.principal.to.local.rules``."""
    service_name: str
    """The service of other nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerSasl:
    mechanisms: Mapping[str, MechanismSettings] = field(default_factory=dict)
    receive_bytes_max: int


def listener_sasl(
    listener: str, texts: Mapping[str, str], *, is_local: bool, static: Mapping[str, str]
) -> ListenerSasl:
    """The settings of a listener with SASL. ``is_local`` says that the listener is bound to loopback only. ``static``
    are settings that can only be made in the node's own files. Raises `InvalidConfig` naming the setting."""
    enabled: tuple[str, ...] = _value(SaslOptions.enabled_mechanisms, texts, listener)
    if not enabled:
        raise InvalidConfig(f"sasl.enabled.mechanisms: listener {listener} needs at least one mechanism")
    checked_by = _password_checker(listener, static)
    mechanisms = {
        name: _mechanism(
            name, listener, texts, SaslOptions.enabled_mechanisms.name, is_server=True, checked_by=checked_by
        )
        for name in enabled
    }
    if OAUTHBEARER in mechanisms:
        # Imported late: a node without it starts faster.
        from millbeck.server.config.listener_oauth import allowed_by, oauth_settings

        settings = mechanisms[OAUTHBEARER]
        oauth = oauth_settings(
            lambda option: _value(option, texts, listener, OAUTHBEARER),
            {} if settings.jaas is None else settings.jaas.options,
            where=f"listener {listener}",
            is_local=is_local,
            allowed=allowed_by(static),
        )
        mechanisms[OAUTHBEARER] = replace(settings, oauth=oauth)
    if GSSAPI in mechanisms:
        named_by = SaslOptions.enabled_mechanisms.name
        mechanisms[GSSAPI] = _with_kerberos(mechanisms[GSSAPI], listener, texts, named_by)
    return ListenerSasl(
        mechanisms=mechanisms,
        receive_bytes_max=_value(SaslOptions.server_receive_bytes_max, texts, listener),
    )


def peer_credentials(
    listener: str, mechanism: str, texts: Mapping[str, str], setting: str, *, static: Mapping[str, str]
) -> MechanismSettings:
    """The settings by which this node logs in to a listener of another node; ``setting`` names the mechanism."""
    settings = _mechanism(mechanism, listener, texts, setting, is_server=False)
    if mechanism == OAUTHBEARER:
        from millbeck.server.config.listener_oauth import peer_tokens

        read = partial(_value, texts=texts, listener=listener, mechanism=OAUTHBEARER)
        jaas = {} if settings.jaas is None else settings.jaas.options
        return replace(settings, tokens=peer_tokens(read, jaas, static))
    if mechanism == GSSAPI:
        return _with_kerberos(settings, listener, texts, setting)
    options = {} if settings.jaas is None else settings.jaas.options
    if not options.get("username") or "password" not in options:
        raise InvalidConfig(
            f"{settings.jaas_setting}: username and password must be set: with them this node logs in to the other "
            f"nodes by {mechanism}"
        )
    return settings


def _with_kerberos(
    settings: MechanismSettings, listener: str, texts: Mapping[str, str], named_by: str
) -> MechanismSettings:
    # Imported late: most nodes do not use Kerberos.
    from millbeck.security.kerberos_names import KerberosNames
    from millbeck.security.sasl.kerberos_settings import SERVICE_NAME, acceptor_of

    if settings.jaas is None:
        others = ", ".join(name for name in LOGIN_MODULES if name != GSSAPI)
        raise InvalidConfig(
            f"{named_by}: GSSAPI, which is the default, needs {settings.jaas_setting} with the keytab of this node; or "
            f"use one of {others} (listener {listener})"
        )
    login = acceptor_of(settings.jaas, settings.jaas_setting)
    rules = _value(KerberosOptions.principal_to_local_rules, texts, listener, GSSAPI)
    KerberosNames(rules, "")
    service = settings.jaas.options.get(SERVICE_NAME) or _value(KerberosOptions.service_name, texts, listener, GSSAPI)
    kerberos = KerberosSettings(
        login=login, rules=tuple(rules), service_name=service or login.principal.partition("/")[0]
    )
    return replace(settings, kerberos=kerberos)


def _password_checker(listener: str, static: Mapping[str, str]) -> tuple[str, str] | None:
    """The plugin that checks passwords of PLAIN on a listener: the setting, and the name of its entry point."""
    setting = _mechanism_key(listener, PLAIN, SaslOptions.server_callback_handler_class.name)
    name = static.get(setting, "").strip()
    is_default = full_name(name, (PLAIN_HANDLER,)) in ("", PLAIN_HANDLER)
    return None if is_default else (setting, name)


def _mechanism(
    name: str,
    listener: str,
    texts: Mapping[str, str],
    named_by: str,
    *,
    is_server: bool,
    checked_by: tuple[str, str] | None = None,
) -> MechanismSettings:
    module = LOGIN_MODULES.get(name)
    if module is None:
        raise InvalidConfig(f"{named_by}: {name} is not known: use {', '.join(LOGIN_MODULES)} (listener {listener})")
    text = _value(SaslOptions.jaas_config, texts, listener, name)
    setting = _mechanism_key(listener, name, SaslOptions.jaas_config.name)
    jaas = None if text is None else parse_jaas(text.reveal(), setting)
    if jaas is not None and jaas.module is not module:
        raise InvalidConfig(f"{setting}: {jaas.module.value} cannot be used with {name}: use {module.value}")
    verifies_with_scram = name == PLAIN and _value(SaslOptions.plain_verify, texts, listener, name) == "scram"
    checked_by = checked_by if name == PLAIN else None
    if checked_by is not None and verifies_with_scram:
        raise InvalidConfig(f"{checked_by[0]}, {SaslOptions.plain_verify.name}: only one of them may be set")
    knows_users = verifies_with_scram or checked_by is not None or (jaas is not None and bool(plain_users(jaas)))
    if is_server and name == PLAIN and not knows_users:
        raise InvalidConfig(
            f'{setting}: PLAIN needs users, as user_<name>="<password>" of {module.value}; or set '
            "millbeck.plain.verify=scram to use the passwords of the SCRAM credentials"
        )
    return MechanismSettings(
        name=name,
        jaas=jaas,
        jaas_setting=setting,
        reauthenticate_ms=_value(SocketOptions.connections_max_reauth_ms, texts, listener, name),
        verifies_with_scram=verifies_with_scram,
        checked_by=checked_by,
    )


def _mechanism_key(listener: str, mechanism: str, name: str) -> str:
    return listener_key(listener, f"{mechanism.lower()}.{name}")


def _value(option: Option[Any], texts: Mapping[str, str], listener: str, mechanism: str | None = None) -> Any:
    """The value of an option for a listener, or for one mechanism of it."""
    names = [listener_key(listener, option.name), option.name]
    if mechanism is not None:
        names.insert(0, _mechanism_key(listener, mechanism, option.name))
    set_by = next((name for name in names if name in texts), option.name)
    given = {option.name: texts[set_by]} if set_by in texts else {}
    try:
        return resolve_value(option, ConfigLayers(static=given))
    except InvalidConfig as error:
        raise InvalidConfig(f"{set_by}: {error.message}") from error
