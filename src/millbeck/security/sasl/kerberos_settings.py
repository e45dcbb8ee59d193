"""The options of ``Krb5LoginModule`` in a JAAS configuration, as far as they say where the credentials are."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.kerberos import KerberosLogin
from millbeck.security.sasl.jaas import JaasEntry, LoginModule

SERVICE_NAME: Final = "serviceName"
DEFAULT_SERVICE: Final = "kafka"
_MODULE: Final = LoginModule.GSSAPI.value


def login_of(entry: JaasEntry, setting: str) -> KerberosLogin:
    """The credentials of an entry: a keytab with its principal, or a ticket cache. Raises `InvalidConfig`."""
    options = entry.options
    if _is_set(entry, "useKeyTab") or "keyTab" in options:
        if not (_is_set(entry, "useKeyTab") and options.get("keyTab") and options.get("principal")):
            raise InvalidConfig(f'{setting}: a keytab needs useKeyTab=true, keyTab="…" and principal="…" of {_MODULE}')
        return KerberosLogin(keytab=options["keyTab"], principal=options["principal"])
    return KerberosLogin(principal=options.get("principal", ""), ticket_cache=options.get("ticketCache", ""))


def acceptor_of(entry: JaasEntry, setting: str) -> KerberosLogin:
    """The credentials of a server: a keytab, and a principal of service and host. Raises `InvalidConfig`."""
    login = login_of(entry, setting)
    service, slash, host = login.principal.partition("@")[0].partition("/")
    if not login.keytab or not (service and slash and host):
        raise InvalidConfig(
            f"{setting}: GSSAPI needs the keytab of this node, as {_MODULE} required useKeyTab=true storeKey=true "
            f'keyTab="…" principal="{DEFAULT_SERVICE}/host@REALM";'
        )
    return login


def _is_set(entry: JaasEntry, option: str) -> bool:
    return entry.options.get(option, "").lower() in ("true", "yes")
