"""Checks of settings, in the words of Kafka's validators."""

from __future__ import annotations

from collections.abc import Callable

from millbeck.pipeline.connect.config.definitions import Check
from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled


def one_of(*choices: str) -> Check:
    allowed = ", ".join(choices)
    return Check(lambda value: None if value in choices else f"String must be one of: {allowed}", f"[{allowed}]")


def one_of_ignoring_case(*choices: str) -> Check:
    allowed = ", ".join(choices)
    folded = {choice.upper() for choice in choices}
    return Check(
        lambda value: (
            None
            if value is not None and value.upper() in folded
            else f"String must be one of (case insensitive): {allowed}"
        ),
        f"(case insensitive) [{allowed}]",
    )


def non_empty_text() -> Check:
    return Check(lambda value: "String must be non-empty" if value == "" else None, "non-empty string")


def not_null() -> Check:
    return Check(lambda value: "entry must be non null" if value is None else None, "non-null string")


def non_empty_list() -> Check:
    words = "Configuration '{name}' must not be empty. Valid values include: any non-empty value"
    return Check(lambda value: None if value else words, "any non-empty value", is_whole_message=True)


def at_least(minimum: float) -> Check:
    def problem(value: float | None) -> str | None:
        if value is None:
            return "Value must be non-null"
        return f"Value must be at least {minimum}" if value < minimum else None

    return Check(problem, f"[{minimum},...]")


def between(minimum: float, maximum: float) -> Check:
    def problem(value: float | None) -> str | None:
        if value is None:
            return "Value must be non-null"
        if value < minimum:
            return f"Value must be at least {minimum}"
        return f"Value must be no more than {maximum}" if value > maximum else None

    return Check(problem, f"[{minimum},...,{maximum}]")


def regular_expression() -> Check:
    """Check that a text is a Java regular expression that is supported here."""

    def problem(value: str | None) -> str | None:
        try:
            compiled(value or "")
        except PatternError as error:
            return f"Invalid regex: {error}"
        return None

    return Check(problem, "valid regex")


def all_of(*checks: Check) -> Check:
    def problem(value: object) -> str | None:
        return next((found for check in checks if (found := check.problem(value)) is not None), None)

    return Check(problem, ",".join(check.allowed for check in checks))


def parsed_by(parse: Callable[[tuple[str, ...]], object], allowed: str, *, is_whole_message: bool = False) -> Check:
    """Check a list with a parsing function; the problem is its ValueError."""

    def problem(value: tuple[str, ...] | None) -> str | None:
        try:
            parse(value or ())
        except ValueError as error:
            return str(error)
        return None

    return Check(problem, allowed, is_whole_message)


def without_control_characters() -> Check:
    """Check that a name is not empty and has no control characters, such as line breaks."""

    def problem(value: str | None) -> str | None:
        if value is None:
            return None
        if not value:
            return "String may not be empty"
        found = [str(ord(character)) for character in value if ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0]
        if found:
            return f"String may not contain control sequences but had the following ASCII chars: {', '.join(found)}"
        return None

    return Check(problem, "non-empty string without ISO control characters")


def without_duplicates() -> Check:
    """Check that a list has no repeated and no empty entries. The list may be empty."""

    def problem(value: tuple[str, ...] | None) -> str | None:
        if value and "" in value:
            return "Configuration '{name}' values must not be empty."
        if value and len(set(value)) < len(value):
            return "Configuration '{name}' values must not be duplicated."
        return None

    return Check(problem, "any non-duplicate values", is_whole_message=True)
