"""Paths to fields: one name (V1), or names with dots between them (V2), in back ticks where a name has dots itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.schema import Field, Schema
from millbeck.pipeline.connect.model.struct import Struct, java_class


@dataclass(frozen=True, slots=True)
class FieldPath:
    """The names on the way to a field."""

    steps: tuple[str, ...]

    @classmethod
    def of(cls, text: str, *, is_nested: bool) -> FieldPath:
        """Raises `ConfigError` for an empty path and for a back tick without its partner."""
        if is_nested and not text:
            raise ConfigError("The path to a field is empty")
        return cls(tuple(_steps(text)) if is_nested else (text,))

    def field_of(self, schema: Schema) -> Field | None:
        for step in self.steps[:-1]:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return schema.field(self.steps[-1])

    def value_of_struct(self, struct: Struct, *, with_default: bool) -> Any:
        """None where the path leads nowhere."""
        current = struct
        for step in self.steps[:-1]:
            if step not in current.schema.by_name:
                return None
            found = current[step]
            if found is None:
                return None
            if not isinstance(found, Struct):
                raise InvalidValue(
                    f"Only Struct objects supported for [nested field access], found: {java_class(found)}"
                )
            current = found
        last = self.steps[-1]
        return current.read(last, with_default=with_default) if last in current.schema.by_name else None

    def value_of_map(self, value: dict[str, Any]) -> Any:
        """None where the path leads nowhere."""
        current = value
        for step in self.steps[:-1]:
            found = current.get(step)
            if found is None:
                return None
            if not isinstance(found, dict):
                raise InvalidValue(
                    "Only Map objects supported in absence of schema for [nested field access],"
                    f" found: {java_class(found)}"
                )
            current = found
        return current.get(self.steps[-1])


def _steps(path: str) -> list[str]:
    steps: list[str] = []
    place = 0
    while place < len(path):
        if path[place] == "`":
            step, place = _quoted_step(path, place)
            steps.append(step)
            continue
        end = path.find(".", place)
        steps.append(path[place:] if end < 0 else path[place:end])
        place = len(path) if end < 0 else end + 1
    if path.endswith("."):
        steps.append("")
    return steps


def _quoted_step(path: str, start: int) -> tuple[str, int]:
    """The name between back ticks and the place behind the dot that follows. A back tick that no dot follows belongs to
    the name; one before a dot does, too, with a backslash before it.
    """
    name = ""
    begin = place = start + 1
    while True:
        place = path.find("`", place)
        is_escaped = place > 0 and path[place - 1] == "\\"
        is_last = place == len(path) - 1
        if place < 0 or (is_last and is_escaped):
            raise ConfigError(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick"
                f" at position {start} to escape it"
            )
        if is_last:
            return name + path[begin:place], place + 1
        if path[place + 1] != ".":
            place += 1
        elif is_escaped:
            name += path[begin : place - 1] + "`"
            begin = place = place + 1
        else:
            return name + path[begin:place], place + 2
