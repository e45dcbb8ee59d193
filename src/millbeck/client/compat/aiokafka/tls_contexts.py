"""``aiokafka.helpers``: TLS contexts whose files the clients can find again."""

from __future__ import annotations

import ssl
from typing import Any


class FileContext(ssl.SSLContext):
    """A TLS context that keeps the settings it was created from."""

    settings: dict[str, str]


def create_ssl_context(
    *,
    cafile: Any = None,
    capath: Any = None,
    cadata: Any = None,
    certfile: Any = None,
    keyfile: Any = None,
    password: Any = None,
) -> ssl.SSLContext:
    """A context for ``ssl_context``, with the system's certificates unless others are given.

    Directories of certificates (``capath``) and passwords that are functions are not supported.
    """
    if capath is not None:
        raise ValueError("capath is not supported: give the certificates as cafile or cadata")
    if callable(password):
        raise ValueError("a function as password is not supported: give its result")
    context = FileContext(ssl.PROTOCOL_TLS_CLIENT)
    if cafile is not None or cadata is not None:
        context.load_verify_locations(cafile, None, cadata)
    else:
        context.load_default_certs()
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    given = {
        "ssl.ca.location": cafile,
        "ssl.ca.pem": _pem(cadata),
        "ssl.certificate.location": certfile,
        "ssl.key.location": keyfile,
        "ssl.key.password": password.decode() if isinstance(password, bytes | bytearray) else password,
    }
    context.settings = {name: str(value) for name, value in given.items() if value is not None}
    return context


def settings_of(context: ssl.SSLContext) -> dict[str, str]:
    """The settings for a context; raises ValueError for one that turns verification off.

    For a context created elsewhere only the trusted certificates are known, not a client's own certificate.
    """
    if isinstance(context, FileContext):
        return context.settings
    if context.verify_mode is not ssl.CERT_REQUIRED:
        raise ValueError("ssl_context does not verify the broker's certificate, which is not supported")
    found: dict[str, str] = {}
    trusted = context.get_ca_certs(binary_form=True)
    if trusted:
        found["ssl.ca.pem"] = "".join(ssl.DER_cert_to_PEM_cert(each) for each in trusted)
    if not context.check_hostname:
        found["ssl.endpoint.identification.algorithm"] = ""
    return found


def _pem(cadata: str | bytes | None) -> str | None:
    if isinstance(cadata, bytes | bytearray):
        return ssl.DER_cert_to_PEM_cert(bytes(cadata))
    return cadata
