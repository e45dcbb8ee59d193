"""Client settings of this package as settings of Java's Kafka client, for Spark's own connector.

Names that both know pass through. Users and passwords become an entry of JAAS, and PEM files what Java reads them as.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from millbeck.pipeline.errors import InvalidOption

_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
_SYNONYMS: Final = {
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.location": "ssl.truststore.location",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
}
_JKS: Final = b"\xfe\xed\xfe\xed"
_PEM: Final = b"-----BEGIN"
_STORE_BYTES_MAX: Final = 1 << 20


def java_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Translate the settings; raises `InvalidOption` naming one that Java's client does not have."""
    translated = {_SYNONYMS.get(name, name): value for name, value in settings.items()}
    if "ssl.crl.location" in translated:
        raise InvalidOption("ssl.crl.location: Java's client, which real-time mode uses, has no revocation lists")
    user, password = translated.pop("sasl.username", None), translated.pop("sasl.password", "")
    if user is not None and "sasl.jaas.config" not in translated:
        mechanism = translated.get("sasl.mechanism", "")
        if mechanism not in _MODULES:
            raise InvalidOption(f"sasl.username needs sasl.mechanism to be one of {', '.join(_MODULES)}")
        translated["sasl.jaas.config"] = (
            f"{_MODULES[mechanism]} required username={_quoted(user)} password={_quoted(password)};"
        )
    chain = translated.pop("ssl.certificate.location", None)
    if chain is not None:
        key = translated.pop("ssl.key.location", chain)
        translated["ssl.keystore.certificate.chain"] = _read("ssl.certificate.location", chain).decode()
        translated["ssl.keystore.key"] = _read("ssl.key.location", key).decode()
    for store, text in (("truststore", "ssl.truststore.certificates"), ("keystore", "ssl.keystore.key")):
        location = translated.get(f"ssl.{store}.location")
        if text in translated:
            translated[f"ssl.{store}.type"] = "PEM"
        elif location is not None:
            translated[f"ssl.{store}.type"] = _kind(_read(f"ssl.{store}.location", location))
    return translated


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(name: str, path: str) -> bytes:
    try:
        with open(Path(path), "rb") as file:
            return file.read(_STORE_BYTES_MAX)
    except OSError as error:
        raise InvalidOption(f"{name}: {path} cannot be read: {error.strerror}") from error


def _kind(content: bytes) -> str:
    """The format of a store, which this package's client detects and Java's is told."""
    if _PEM in content:
        return "PEM"
    return "JKS" if content.startswith(_JKS) else "PKCS12"
