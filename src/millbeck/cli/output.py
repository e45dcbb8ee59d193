"""Print rows as a table for people, or as JSON or YAML for programs."""

from __future__ import annotations

import json
import re
import select
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

TABLE: Final = "table"
TEXT: Final = "text"
JSON: Final = "json"
YAML: Final = "yaml"

SHORTEST_COLUMN: Final = 12
"""Wide columns are not shortened below this many characters to make a table fit the terminal."""
SHORTEST_COLUMN_IF_NEEDED: Final = 7
"""The same for tables that do not fit with their headings wrapped either."""
HEADING_WIDTH: Final = 9
_NO_HEADERS: Final = "millbeck.no_headers"
_PLAIN: Final = re.compile(r"[A-Za-z_/][\w./+-]*", re.ASCII)
_ESCAPED: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What `json` leaves as it is, and what controls a terminal or is refused in YAML."""
_WORDS_WITH_MEANING: Final = ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf")


def output_option(function: F) -> F:
    """Add ``-o`` (passed on as ``output``) and ``--no-headers``, which `show_rows` reads from click's context."""

    def remember(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[_NO_HEADERS] = value

    headers = click.option(
        "--no-headers",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Print tables without headings.",
    )
    output = click.option(
        "-o",
        "--output",
        type=click.Choice([TABLE, JSON, YAML]),
        default=TABLE,
        show_default=True,
        help="The output format.",
    )
    return output(headers(function))


def file_output_option(function: F) -> F:
    """Add ``-o`` to a command that prints a file for another command (passed on as ``output``)."""
    option = click.option(
        "-o",
        "--output",
        type=click.Choice([YAML, JSON]),
        default=YAML,
        show_default=True,
        help="The format of the file.",
    )
    return option(function)


def stream_output_option(function: F) -> F:
    """Add ``-o`` to a command that prints lines or records as they come (passed on as ``output``)."""
    option = click.option(
        "-o",
        "--output",
        type=click.Choice([TEXT, JSON, YAML]),
        default=TEXT,
        show_default=True,
        help="The output format: text, one JSON object per line, or YAML documents.",
    )
    return option(function)


def document(value: object, output: str) -> str:
    """One item of a stream, without the last newline: a line of JSON or a document of YAML."""
    if output == JSON:
        return json.dumps(value, ensure_ascii=False)
    return "\n".join(("---", *yaml_lines(value)))


def hides_headers() -> bool:
    """Whether ``--no-headers`` was given."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(_NO_HEADERS))


def check_reader() -> None:
    """Raise ``BrokenPipeError`` if nobody reads standard output any more, as under ``| head``.

    A command that waits for records calls this between polls: without output it would not notice by writing.
    """
    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        is_closed = any(events & select.POLLERR for _, events in poll.poll(0))
    except (AttributeError, OSError, ValueError):
        return  # standard output is no file, or this system has no poll()
    if is_closed:
        raise BrokenPipeError


def show_rows(
    rows: Iterable[Mapping[str, object]],
    output: str,
    *,
    columns: Sequence[str] | None = None,
    titles: Mapping[str, str] | None = None,
) -> None:
    """Print one line or entry per row.

    ``columns`` are the keys a table shows, in that order; ``titles`` their headings where these differ from the key.
    """
    listed = [dict(row) for row in rows]
    if output == TABLE:
        if listed:
            show_table(listed, columns or list(listed[0]), titles or {})
    else:
        show(listed, output)


def show(value: object, output: str) -> None:
    """Print any structure as JSON or YAML."""
    assert output != TABLE, "a table can only show rows"
    click.echo(json_text(value, 2) if output == JSON else "\n".join(yaml_lines(value)))


def show_table(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], titles: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Print a table; on a terminal it is fitted to the width, otherwise no value is shortened."""
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    headings, lines = _table_lines(rows, columns, titles, room)
    click.echo("\n".join(lines if hides_headers() else [*headings, *lines]))


def table(
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[str],
    titles: Mapping[str, str] = MappingProxyType({}),
    *,
    room: int | None = None,
) -> str:
    """Columns padded to their widest cell, headings in capitals; numbers are aligned to the right.

    With ``room``, a number of characters per line, the widest text columns are shortened until the lines fit; where
    that is not enough, headings are wrapped, and text columns are shortened further.
    """
    headings, lines = _table_lines(rows, columns, titles, room)
    return "\n".join([*headings, *lines])


def _table_lines(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], titles: Mapping[str, str], room: int | None
) -> tuple[list[str], list[str]]:
    """The lines of the headings, and those of the rows."""
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    is_number = [_holds_numbers([row.get(column) for row in rows]) for column in columns]
    headings = [[titles.get(column, column.replace("_", "-").upper()) for column in columns]]
    widths = _widths([*headings, *cells])
    if room is not None:
        widths = _fitting(widths, is_number, room, SHORTEST_COLUMN)
        if _line_length(widths) > room:
            headings = _wrapped(headings[0])
            widths = _fitting(_widths([*headings, *cells]), is_number, room, SHORTEST_COLUMN)
            widths = _fitting(widths, is_number, room, SHORTEST_COLUMN_IF_NEEDED)

    def text(line: Sequence[str]) -> str:
        return "  ".join(
            each.rjust(width) if to_the_right else _shortened(each, width).ljust(width)
            for each, width, to_the_right in zip(line, widths, is_number, strict=True)
        ).rstrip()

    return list(map(text, headings)), list(map(text, cells))


def _widths(lines: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _line_length(widths: Sequence[int]) -> int:
    return sum(widths) + 2 * (len(widths) - 1)


def _wrapped(headings: Sequence[str]) -> list[list[str]]:
    """The headings on several lines, broken at hyphens, with the last words on the last line."""
    from textwrap import wrap

    parts = [wrap(each, HEADING_WIDTH, break_long_words=False) for each in headings]
    height = max(map(len, parts))
    filled = [[""] * (height - len(each)) + each for each in parts]
    return [list(line) for line in zip(*filled, strict=True)]


def _fitting(widths: Sequence[int], is_number: Sequence[bool], room: int, shortest: int) -> list[int]:
    """The widths with the widest text column made narrower, one character at a time, until a line fits ``room``."""
    fitting = list(widths)
    texts = [place for place, numbers in enumerate(is_number) if not numbers]
    while texts and _line_length(fitting) > room:
        widest = max(texts, key=fitting.__getitem__)
        if fitting[widest] <= shortest:
            break
        fitting[widest] -= 1
    return fitting


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


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
    return printable(str(value))


def printable(text: str) -> str:
    """Escape control characters: names that clients choose must not control the terminal, or begin a line."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def json_text(value: object, indent: int | None = None) -> str:
    """JSON that a terminal can show, and YAML may contain."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def yaml_lines(value: object, indent: str = "") -> list[str]:
    """Lines of YAML: block style for non-empty lists and mappings, one line for everything else."""
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
    # JSON is valid YAML, so every scalar that is not a plain word is written as JSON.
    return json_text(value)
