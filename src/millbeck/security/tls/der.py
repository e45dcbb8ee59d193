"""Parser of DER, the binary encoding of certificates and key stores (X.690). Input is untrusted: every length is
checked against the remaining bytes, and nothing recurses.
"""

from __future__ import annotations

from typing import Final, NamedTuple

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
UTF8_STRING: Final = 0x0C
PRINTABLE_STRING: Final = 0x13
T61_STRING: Final = 0x14
IA5_STRING: Final = 0x16
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
GENERAL_STRING: Final = 0x1B
BMP_STRING: Final = 0x1E
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LENGTH_BYTES_MAX: Final = 4
_ARC_BITS_MAX: Final = 128


class DerError(ValueError):
    """The bytes are not valid DER of the expected structure."""


class Element(NamedTuple):
    tag: int
    content: bytes
    encoded: bytes
    """The whole element: tag, length and content."""


def read_element(data: bytes, position: int = 0) -> tuple[Element, int]:
    """The element at ``position``, and the position after it."""
    if position + 2 > len(data):
        raise DerError("the data ends inside an element")
    tag, length = data[position], data[position + 1]
    if tag & 0x1F == 0x1F:
        raise DerError("a tag of several bytes, which no certificate has")
    start = position + 2
    if length >= 0x80:
        count = length & 0x7F
        if not 1 <= count <= _LENGTH_BYTES_MAX or start + count > len(data):
            raise DerError("an element's length cannot be read")
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    end = start + length
    if end > len(data):
        raise DerError(f"an element of {length} bytes, but only {len(data) - start} are left")
    return Element(tag, data[start:end], data[position:end]), end


def read_only(data: bytes, tag: int = SEQUENCE) -> Element:
    """The single element that fills all of ``data``."""
    element, end = read_element(data)
    if end != len(data):
        raise DerError(f"{len(data) - end} bytes follow the element")
    return expect(element, tag)


def read_all(data: bytes) -> list[Element]:
    """All consecutive elements in ``data``, the content of a SEQUENCE or SET."""
    elements = []
    position = 0
    while position < len(data):
        element, position = read_element(data, position)
        elements.append(element)
    return elements


def expect(element: Element, tag: int) -> Element:
    if element.tag != tag:
        raise DerError(f"an element with tag {tag:#04x} was expected, not {element.tag:#04x}")
    return element


def read_integer(element: Element) -> int:
    expect(element, INTEGER)
    if not element.content:
        raise DerError("an integer without bytes")
    return int.from_bytes(element.content, "big", signed=True)


def read_identifier(element: Element) -> str:
    """An object identifier in dotted form."""
    expect(element, OBJECT_IDENTIFIER)
    if not element.content or element.content[-1] & 0x80:
        raise DerError("an object identifier that does not end")
    arcs: list[int] = []
    value = 0
    for byte in element.content:
        value = value << 7 | byte & 0x7F
        if value >> _ARC_BITS_MAX:
            raise DerError("an object identifier with a number too large")
        if not byte & 0x80:
            arcs.append(value)
            value = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))
