"""Keywords of strings, numbers and types: checks that the reader's are not narrower than the writer's."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Final, NamedTuple

from millbeck.registry.formats.interface import Incompatibility
from millbeck.registry.formats.json_schema.conjuncts import Part, Writer, allows, types_of
from millbeck.registry.formats.json_schema.drafts import Draft, Json

_SHOWN_MAX: Final = 100


def problem(kind: str, path: str, sentence: str, detail: object) -> Incompatibility:
    return Incompatibility(kind, path, sentence, shown(detail))


def shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def type_problems(reader: Part, writer: Writer, path: str) -> list[Incompatibility]:
    allowed = types_of(reader.words)
    missing = [each for each in writer.types if not allows(allowed, each)]
    if "integer" in missing and "number" in missing:
        missing.remove("integer")
    if not missing:
        return []
    remaining = [each for each in writer.types if allows(allowed, each)]
    kind = "TYPE_NARROWED" if remaining else "TYPE_CHANGED"
    accepted = ", ".join(dict.fromkeys((*allowed, *missing)))
    return [
        problem(
            kind,
            f"{path}/type",
            f"a value may have been written as {', '.join(missing)}, and is read as {', '.join(allowed)} only; the "
            f"types {accepted} would be accepted",
            ", ".join(missing),
        )
    ]


def bound_problems(reader: Part, writer: Writer, name: str, path: str, known: int | None) -> Iterator[Incompatibility]:
    """The problems of a bound; ``known`` is a bound of the writer that follows from other keywords."""
    limit = _number(reader.words.get(name))
    is_upper = name.startswith("max")
    if limit is None or (not is_upper and limit <= 0):
        return
    given = [each for each in map(_number, writer.values(name)) if each is not None]
    if known is not None:
        given.append(Fraction(known))
    written = (min if is_upper else max)(given, default=None)
    word = _words_of(name)
    if written is None:
        yield problem(f"{word}_ADDED", f"{path}/{name}", f"{name} {limit} is new; remove it", limit)
    elif (written > limit) if is_upper else (written < limit):
        change = "DECREASED" if is_upper else "INCREASED"
        yield problem(
            f"{word}_{change}",
            f"{path}/{name}",
            f"{name} was {written} and is {limit}; it may only be {'greater' if is_upper else 'smaller'}",
            limit,
        )


def _words_of(name: str) -> str:
    """``maxLength`` as ``MAX_LENGTH``."""
    return "".join(f"_{each}" if each.isupper() else each.upper() for each in name)


def string_problems(reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    yield from bound_problems(reader, writer, "maxLength", path, None)
    yield from bound_problems(reader, writer, "minLength", path, None)
    pattern = reader.words.get("pattern")
    written = writer.values("pattern")
    if isinstance(pattern, str) and pattern not in written:
        kind, was = ("PATTERN_CHANGED", f"was {shown(written[0])} and") if written else ("PATTERN_ADDED", "is new and")
        yield problem(kind, f"{path}/pattern", f"the pattern {was} is {shown(pattern)}; keep it unchanged", pattern)


class _Bound(NamedTuple):
    value: Fraction
    is_exclusive: bool
    name: str


def number_problems(reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    for is_upper in (True, False):
        sign = 1 if is_upper else -1
        written = min(
            (each for part in writer.plains for each in _bounds(part.words, part.draft, is_upper=is_upper)),
            key=lambda each: (sign * each.value, not each.is_exclusive),
            default=None,
        )
        for limit in _bounds(reader.words, reader.draft, is_upper=is_upper):
            word = _words_of(limit.name)
            where = f"{path}/{limit.name}"
            if written is None:
                yield problem(f"{word}_ADDED", where, f"{limit.name} {limit.value} is new; remove it", limit.value)
            elif sign * written.value > sign * limit.value or (
                written.value == limit.value and limit.is_exclusive and not written.is_exclusive
            ):
                change = "DECREASED" if is_upper else "INCREASED"
                wider = "greater" if is_upper else "smaller"
                yield problem(
                    f"{word}_{change}",
                    where,
                    f"{written.name} was {written.value}, {limit.name} is {limit.value}; it may only be {wider}",
                    limit.value,
                )
    yield from _multiple_problems(reader, writer, path)


def _bounds(words: Json, draft: Draft, *, is_upper: bool) -> Iterator[_Bound]:
    name = "maximum" if is_upper else "minimum"
    exclusive = f"exclusive{name.capitalize()}"
    value = _number(words.get(name))
    if value is not None:
        yield _Bound(value, draft is Draft.DRAFT_4 and words.get(exclusive) is True, name)
    value = _number(words.get(exclusive))
    if value is not None:
        yield _Bound(value, True, exclusive)


def _multiple_problems(reader: Part, writer: Writer, path: str) -> Iterator[Incompatibility]:
    factor = _number(reader.words.get("multipleOf"))
    if factor is None or factor == 0:
        return
    written = [each for each in map(_number, writer.values("multipleOf")) if each]
    if "number" not in writer.types:
        written.append(Fraction(1))
    if any((each / factor).denominator == 1 for each in written):
        return
    where = f"{path}/multipleOf"
    if not writer.values("multipleOf"):
        yield problem("MULTIPLE_OF_ADDED", where, f"multipleOf {factor} is new; remove it", factor)
        return
    was = written[0]
    kind = "MULTIPLE_OF_EXPANDED" if (factor / was).denominator == 1 else "MULTIPLE_OF_CHANGED"
    yield problem(kind, where, f"multipleOf was {was} and is {factor}; a divisor of {was} would be accepted", factor)


def _number(value: Any) -> Fraction | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # The exact decimal number: 0.1 is a tenth.
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))
