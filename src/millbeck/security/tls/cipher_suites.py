"""Maps Java's names of TLS 1.2 cipher suites (which are IANA's) to OpenSSL's.

Python's ``ssl`` cannot choose the suites of TLS 1.3, so their names are refused instead of being ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from millbeck.kernel.errors import InvalidConfig

TLS_1_3: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256",
    "TLS_AES_128_CCM_8_SHA256",
)
_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA", "ECDHE_RSA": "ECDHE-RSA", "DHE_RSA": "DHE-RSA", "RSA": ""}
_CIPHERS: Final = {
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA": "AES128-SHA",
}
_NOT_MADE: Final = frozenset(
    {("RSA", "CHACHA20_POLY1305_SHA256"), ("RSA", "AES_256_CBC_SHA384"), ("DHE_RSA", "AES_256_CBC_SHA384")}
    | {(exchange, "AES_256_CBC_SHA256") for exchange in ("ECDHE_ECDSA", "ECDHE_RSA")}
)
TLS_1_2: Final = {
    f"TLS_{exchange}_WITH_{cipher}": "-".join(filter(None, (prefix, openssl)))
    for exchange, prefix in _EXCHANGES.items()
    for cipher, openssl in _CIPHERS.items()
    if (exchange, cipher) not in _NOT_MADE
}
"""OpenSSL's names of cipher suites by IANA's names."""


def openssl_ciphers(names: Iterable[str], setting: str = "ssl.cipher.suites") -> str:
    """The OpenSSL cipher list of these TLS 1.2 suites; "" for none. Raises `InvalidConfig`."""
    chosen = []
    for name in names:
        if name in TLS_1_3:
            raise InvalidConfig(
                f"{setting}: {name} is a cipher suite of TLS 1.3; these are always enabled and cannot be chosen: "
                "leave it out, or set ssl.enabled.protocols=TLSv1.2"
            )
        if name not in TLS_1_2:
            raise InvalidConfig(f"{setting}: {name} is not a known cipher suite of TLS 1.2")
        chosen.append(TLS_1_2[name])
    return ":".join(chosen)
