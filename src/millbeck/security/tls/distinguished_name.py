"""Distinguished names as Java writes them (``X500Principal.getName()``, RFC 2253): Kafka's principals and mapping
rules are texts in exactly this form.

The most specific part comes first. Only nine attributes have a name; any other is its object identifier, and its value
the DER in hexadecimal.
"""

from __future__ import annotations

from typing import Final

from millbeck.security.tls import der

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_TEXTS: Final = (
    der.UTF8_STRING,
    der.PRINTABLE_STRING,
    der.T61_STRING,
    der.IA5_STRING,
    der.GENERAL_STRING,
    der.BMP_STRING,
)
"""The string types that Java writes as text; it decodes all of them as UTF-8."""
_ESCAPED: Final = ',=+<>#;"\\'
_BLANKS: Final = " \r"


def format_name(name: der.Element) -> str:
    """Format a Name of a certificate as text. Raises `DerError`."""
    parts = [_relative_name(part) for part in der.read_all(der.expect(name, der.SEQUENCE).content)]
    return ",".join(reversed(parts))


def _relative_name(part: der.Element) -> str:
    return "+".join(_attribute(each) for each in der.read_all(der.expect(part, der.SET).content))


def _attribute(attribute: der.Element) -> str:
    fields = der.read_all(der.expect(attribute, der.SEQUENCE).content)
    if len(fields) != 2:
        raise der.DerError("an attribute of a name has a type and a value")
    identifier = der.read_identifier(fields[0])
    value = fields[1]
    name = _NAMES.get(identifier)
    if name is None or value.tag not in _TEXTS:
        return f"{name or identifier}=#{value.encoded.hex()}"
    return f"{name}={_escape(value.content.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    escaped = "".join("\\00" if each == "\0" else f"\\{each}" if each in _ESCAPED else each for each in text)
    lead = len(escaped) - len(escaped.lstrip(_BLANKS))
    trail = len(escaped.rstrip(_BLANKS))
    return "".join(f"\\{each}" if at < lead or at >= trail else each for at, each in enumerate(escaped))
