"""Reads the text of a header as SimpleHeaderConverter does: null, booleans, numbers, dates, arrays and maps, else text.

A recursive descent over tokens. The tokens end at one of ``: , { } [ ] "``, unless a backslash stands before it; spaces
around an expected token do not matter. Whatever does not parse as an array or map is a text as a whole.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Final, NamedTuple

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.dates import DateFormat
from millbeck.pipeline.connect.model.logical import (
    Instant,
    date_schema,
    decimal_schema,
    scale,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits, float_of
from millbeck.pipeline.connect.model.schema import (
    BOOLEAN_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
)
from millbeck.pipeline.connect.model.values import (
    DATE_FORMAT,
    TIME_FORMAT,
    TIMESTAMP_FORMAT,
    converted,
    decimal_from,
)

_DELIMITERS: Final = frozenset(':,{}[]"')
_DEPTH_MAX: Final = 100
_LONG_DIGITS: Final = 19
_INTEGERS: Final = (
    (8, Int8, INT8_SCHEMA),
    (16, Int16, INT16_SCHEMA),
    (32, Int32, INT32_SCHEMA),
    (64, int, INT64_SCHEMA),
)
_TEMPORAL: Final[dict[int, tuple[DateFormat, Schema]]] = {
    13: (TIME_FORMAT, time_schema()),
    24: (TIMESTAMP_FORMAT, timestamp_schema()),
    10: (DATE_FORMAT, date_schema()),
}
_WIDENING: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
)


class Parsed(NamedTuple):
    """A value with its schema; both are None for null."""

    schema: Schema | None
    value: Any


NULL: Final = Parsed(None, None)


def parse_text(text: str) -> Parsed:
    """The value that a header's text stands for."""
    return Parsed(STRING_SCHEMA, text) if not text else _Parser(text).value(embedded=False)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._next: str | None = None
        self._depth = 0

    def value(self, *, embedded: bool) -> Parsed:
        if not self._has_next():
            return NULL
        if embedded and self._take('"'):
            return self._quoted()
        if self._takes_word("null", embedded=embedded):
            return NULL
        for word, meaning in (("true", True), ("false", False)):
            if self._takes_word(word, embedded=embedded):
                return Parsed(BOOLEAN_SCHEMA, meaning)
        start = self._mark()
        try:
            if self._take("["):
                return self._nested(self._array)
            if self._take("{"):
                return self._nested(self._map)
        except InvalidValue:
            self._rewind(start)
        token = self._token()
        if not token.strip():
            return Parsed(STRING_SCHEMA, token)
        return self._scalar(token.strip(), embedded=embedded)

    def _nested(self, read: Any) -> Parsed:
        if self._depth >= _DEPTH_MAX:
            raise InvalidValue(f"more than {_DEPTH_MAX} arrays and maps inside one another")
        self._depth += 1
        try:
            found: Parsed = read()
        finally:
            self._depth -= 1
        return found

    def _scalar(self, token: str, *, embedded: bool) -> Parsed:
        if token[0].isdigit():
            found = self._temporal_of_tokens(token)
            if found is not None:
                return found
        if token[0].isdigit() or token[0] in "+-":
            try:
                return _number(decimal_from(token))
            except ValueError:
                pass
        if embedded:
            raise InvalidValue("Failed to parse embedded value")
        return Parsed(STRING_SCHEMA, self._text)

    def _temporal_of_tokens(self, token: str) -> Parsed | None:
        """Colons end tokens, so a time is this one and four more."""
        start = self._mark()
        rest: list[str] = []
        while len(rest) < 4 and self._has_next():
            rest.append(self._token())
        if len(rest) == 4:
            found = _temporal(token + "".join(rest))
            if found is not None:
                return found
        self._rewind(start)
        return _temporal(token)

    def _quoted(self) -> Parsed:
        parts: list[str] = []
        while self._has_next() and not self._take('"'):
            parts.append(self._token())
        content = "".join(parts)
        return _temporal(content) or Parsed(STRING_SCHEMA, content)

    def _array(self) -> Parsed:
        values: list[Any] = []
        common = _CommonSchema()
        while self._has_next():
            if self._take("]"):
                if common.schema is None:
                    return Parsed(Schema(SchemaType.ARRAY), values)
                schema = array_schema(common.schema)
                return Parsed(schema, [converted(common.schema, each) for each in values])
            if self._take(","):
                raise InvalidValue(f"Unable to parse an empty array element: {self._text}")
            element = self.value(embedded=True)
            common.add(element.schema)
            values.append(element.value)
            before = self._mark()
            if self._take("]"):
                self._rewind(before)
            elif not self._take(","):
                raise InvalidValue("Array elements missing ',' delimiter")
        raise InvalidValue(f"Array is missing terminating ']': {self._text}")

    def _map(self) -> Parsed:
        values: dict[Any, Any] = {}
        keys, elements = _CommonSchema(), _CommonSchema()
        while self._has_next():
            if self._take("}"):
                return _parsed_map(values, keys.schema, elements.schema)
            if self._take(","):
                raise InvalidValue(f"Unable to parse a map entry with no key or value: {self._text}")
            key = self.value(embedded=True)
            if key.value is None:
                raise InvalidValue(f"Map entry may not have a null key: {self._text}")
            if not self._take(":"):
                raise InvalidValue(f"Map entry is missing ':' at {self._place} in {self._text}")
            element = self.value(embedded=True)
            if isinstance(key.value, (list, dict)):
                raise InvalidValue("an array or a map cannot be a key of a map")
            values[key.value] = element.value
            self._take(",")
            keys.add(key.schema)
            elements.add(element.schema)
        raise InvalidValue(f"Map is missing terminating '}}': {self._text}")

    def _takes_word(self, word: str, *, embedded: bool) -> bool:
        start = self._mark()
        if self._take(word) and (embedded or not self._has_next()):
            return True
        self._rewind(start)
        return False

    def _take(self, expected: str) -> bool:
        if self._next is None:
            if not self._has_next():
                return False
            self._next = self._scan()
        while not self._next.strip() and self._place < len(self._text):
            self._next = self._scan()
        if self._next.strip() != expected:
            return False
        self._next = None
        return True

    def _has_next(self) -> bool:
        return self._next is not None or self._place < len(self._text)

    def _token(self) -> str:
        token = self._scan() if self._next is None else self._next
        self._next = None
        return token

    def _scan(self) -> str:
        start = self._place
        is_escaped = False
        while self._place < len(self._text):
            character = self._text[self._place]
            if character in _DELIMITERS and not is_escaped:
                if start == self._place:
                    self._place += 1
                return self._text[start : self._place]
            is_escaped = character == "\\" and not is_escaped
            self._place += 1
        return self._text[start:]

    def _mark(self) -> int:
        return self._place - len(self._next or "")

    def _rewind(self, place: int) -> None:
        self._place = place
        self._next = None


class _CommonSchema:
    """The schema that all elements of an array can take: numbers widen, and anything else must be equal. The first
    mismatch leaves none.
    """

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._is_possible = True

    def add(self, latest: Schema | None) -> None:
        if latest is None or not self._is_possible:
            return
        self.schema = latest if self.schema is None else _merged(self.schema, latest)
        self._is_possible = self.schema is not None


def _merged(first: Schema, second: Schema) -> Schema | None:
    if first.type is second.type:
        return second
    if first.type in _WIDENING and second.type in _WIDENING:
        return max(first, second, key=lambda schema: _WIDENING.index(schema.type))
    return None


def _parsed_map(values: dict[Any, Any], key: Schema | None, element: Schema | None) -> Parsed:
    if key is None:
        return Parsed(Schema(SchemaType.MAP), values)
    if element is None:
        schema = Schema(SchemaType.MAP, key_schema=key)
        return Parsed(schema, {converted(key, name): each for name, each in values.items()})
    return Parsed(
        map_schema(key, element),
        {converted(key, name): converted(element, each) for name, each in values.items()},
    )


def _number(value: Decimal) -> Parsed:
    """The narrowest integer; a float for a fraction or an exponent; a Decimal for what is too large for both."""
    if value.adjusted() < _LONG_DIGITS:
        low, high = value.to_integral_value(ROUND_FLOOR), value.to_integral_value(ROUND_CEILING)
        if low == high:
            whole = int(low)
            for bits, number, schema in _INTEGERS:
                if fits(whole, bits):
                    return Parsed(schema, number(whole))
    as_float = float_of(value)
    narrow = Float32(as_float)
    infinities = (float("inf"), float("-inf"))
    if scale(value) != 0:
        if narrow not in infinities:
            return Parsed(FLOAT32_SCHEMA, narrow)
        if as_float not in infinities:
            return Parsed(FLOAT64_SCHEMA, as_float)
    return Parsed(decimal_schema(scale(value)), value)


def _temporal(text: str) -> Parsed | None:
    """A date, time or timestamp, told by its length."""
    unescaped = text.replace("\\:", ":")
    known = _TEMPORAL.get(len(unescaped))
    if known is None:
        return None
    date_format, schema = known
    milliseconds = date_format.parse(unescaped)
    return None if milliseconds is None else Parsed(schema, Instant(milliseconds))
