"""What commands list, as a table for people or as JSON or YAML for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

TABLE: Final = "table"
JSON: Final = "json"
YAML: Final = "yaml"

_PLAIN: Final = re.compile(r"[A-Za-z_/][\w./+-]*", re.ASCII)
_WORDS_WITH_MEANING: Final = ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf")

output_option: Final[Callable[[F], F]] = click.option(
    "-o",
    "--output",
    type=click.Choice([TABLE, JSON, YAML]),
    default=TABLE,
    show_default=True,
    help="How to print the result.",
)


def show_rows(
    rows: Iterable[Mapping[str, object]],
    output: str,
    *,
    columns: Sequence[str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> None:
    """Print one line or entry per row.

    ``columns`` says which keys a table shows, and in which order; ``titles`` what it calls those that are not called
    as they are.
    """
    listed = [dict(row) for row in rows]
    if output == TABLE:
        if listed:
            click.echo(table(listed, columns or list(listed[0]), titles or {}))
    else:
        show(listed, output)


def show(value: object, output: str) -> None:
    """Print any structure as JSON or YAML."""
    assert output != TABLE, "a table needs rows"
    click.echo(json.dumps(value, indent=2, ensure_ascii=False) if output == JSON else "\n".join(yaml_lines(value)))


def table(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], titles: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Columns padded to their widest cell, headers in capitals; numbers stand to the right."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    headers = [titles.get(column, column.replace("_", "-").upper()) for column in columns]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    is_number = [_holds_numbers([row.get(column) for row in rows]) for column in columns]
    return "\n".join(
        "  ".join(
            text.rjust(width) if to_the_right else text.ljust(width)
            for text, width, to_the_right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        for line in (headers, *cells)
    )


def _holds_numbers(values: Iterable[object]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)


def _cell(value: object) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={_cell(each)}" for key, each in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ",".join(map(_cell, value)) or "-"
    return str(value)


def yaml_lines(value: object, indent: str = "") -> list[str]:
    """Block style for lists and mappings that hold something, one line for everything else."""
    if isinstance(value, Mapping) and value:
        lines: list[str] = []
        for key, each in value.items():
            if _is_block(each):
                lines += [f"{indent}{_scalar(key)}:", *yaml_lines(each, indent + "  ")]
            else:
                lines.append(f"{indent}{_scalar(key)}: {_scalar(each)}")
        return lines
    if isinstance(value, list | tuple) and value:
        lines = []
        for each in value:
            inner = yaml_lines(each, indent + "  ")
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        return lines
    return [indent + _scalar(value)]


def _is_block(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS_WITH_MEANING:
        return value
    # JSON is YAML: whatever is not a plain word is written as JSON writes it.
    return json.dumps(value, ensure_ascii=False)
