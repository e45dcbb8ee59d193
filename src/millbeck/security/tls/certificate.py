"""Parser of certificates: subject, validity, alternative names and kind of key."""

from __future__ import annotations

import calendar
import ipaddress
from dataclasses import dataclass
from typing import Final

from millbeck.security.tls import der
from millbeck.security.tls.der import DerError, Element
from millbeck.security.tls.distinguished_name import format_name

SLOW_RSA_BITS: Final = 2048
"""The RSA key size in bits above which a signature takes milliseconds."""
DAY_MS: Final = 86_400_000

_KEY_TYPES: Final = {
    "1.2.840.113549.1.1.1": "RSA",
    "1.2.840.113549.1.1.10": "RSA",
    "1.2.840.10045.2.1": "EC",
    "1.2.840.10040.4.1": "DSA",
    "1.3.101.112": "Ed25519",
    "1.3.101.113": "Ed448",
}
_VERSION: Final = 0xA0
_EXTENSIONS: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_TEXT_NAMES: Final = {0x81: "email", 0x82: "DNS", 0x86: "URI"}
_ADDRESS_NAME: Final = 0x87


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    der: bytes
    subject: str
    """The subject's distinguished name in Java's form."""
    issuer: str
    not_before_ms: int
    not_after_ms: int
    alternative_names: frozenset[str]
    """The alternative names, such as ``DNS:localhost`` and ``IP:127.0.0.1``."""
    key_type: str
    rsa_bits: int
    """The size of an RSA key in bits; 0 for other keys."""

    @property
    def has_slow_key(self) -> bool:
        return self.rsa_bits > SLOW_RSA_BITS

    def days_left(self, now_ms: int) -> float:
        return (self.not_after_ms - now_ms) / DAY_MS


def parse_certificate(data: bytes) -> Certificate:
    """Parse a certificate; raises `DerError`. The signature is not verified."""
    fields = der.read_all(der.read_only(data).content)
    signed = der.read_all(der.expect(_at(fields, 0), der.SEQUENCE).content)
    if signed and signed[0].tag == _VERSION:
        del signed[0]
    validity = der.read_all(der.expect(_at(signed, 3), der.SEQUENCE).content)
    key_type, rsa_bits = _key(_at(signed, 5))
    return Certificate(
        der=data,
        subject=format_name(_at(signed, 4)),
        issuer=format_name(_at(signed, 2)),
        not_before_ms=_time_ms(_at(validity, 0)),
        not_after_ms=_time_ms(_at(validity, 1)),
        alternative_names=_alternative_names(signed[6:]),
        key_type=key_type,
        rsa_bits=rsa_bits,
    )


def in_order(certificates: list[Certificate]) -> list[Certificate]:
    """The chain that begins with the first certificate, each followed by its issuer; others are left out."""
    chain = certificates[:1]
    left = certificates[1:]
    while left and chain[-1].issuer != chain[-1].subject:
        issuer = next((each for each in left if each.subject == chain[-1].issuer), None)
        if issuer is None:
            break
        chain.append(issuer)
        left.remove(issuer)
    return chain


def _at(elements: list[Element], index: int) -> Element:
    if index >= len(elements):
        raise DerError("a field of the certificate is missing")
    return elements[index]


def _key(public_key: Element) -> tuple[str, int]:
    fields = der.read_all(der.expect(public_key, der.SEQUENCE).content)
    algorithm = der.read_all(der.expect(_at(fields, 0), der.SEQUENCE).content)
    identifier = der.read_identifier(_at(algorithm, 0))
    key_type = _KEY_TYPES.get(identifier, identifier)
    if key_type != "RSA":
        return key_type, 0
    key = der.read_only(der.expect(_at(fields, 1), der.BIT_STRING).content[1:])
    return key_type, der.read_integer(_at(der.read_all(key.content), 0)).bit_length()


def _time_ms(element: Element) -> int:
    text = element.content.decode("ascii", "replace")
    if element.tag == der.UTC_TIME:
        text = ("20" if text < "50" else "19") + text
    elif element.tag != der.GENERALIZED_TIME:
        raise DerError(f"a time with tag {element.tag:#04x}")
    if len(text) != 15 or not text[:14].isdecimal() or not text.isascii() or text[14] != "Z":
        raise DerError(f"a time that cannot be read: {text[:20]!r}")
    year, month, day, hour, minute, second = (int(text[:4]), *(int(text[at : at + 2]) for at in range(4, 14, 2)))
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour <= 23 and minute <= 59 and second <= 60 and year):
        raise DerError(f"a time that does not exist: {text!r}")
    return calendar.timegm((year, month, day, hour, minute, second)) * 1000


def _alternative_names(fields: list[Element]) -> frozenset[str]:
    extensions = next((each for each in fields if each.tag == _EXTENSIONS), None)
    if extensions is None:
        return frozenset()
    for extension in der.read_all(der.read_only(extensions.content).content):
        parts = der.read_all(der.expect(extension, der.SEQUENCE).content)
        if der.read_identifier(_at(parts, 0)) == _ALTERNATIVE_NAMES:
            names = der.read_only(der.expect(parts[-1], der.OCTET_STRING).content)
            return frozenset(_alternative_name(each) for each in der.read_all(names.content))
    return frozenset()


def _alternative_name(name: Element) -> str:
    kind = _TEXT_NAMES.get(name.tag)
    if kind is not None:
        return f"{kind}:{name.content.decode('utf-8', 'replace')}"
    if name.tag == _ADDRESS_NAME and len(name.content) in (4, 16):
        return f"IP:{ipaddress.ip_address(name.content)}"
    return f"{name.tag:#04x}:{name.content.hex()}"
