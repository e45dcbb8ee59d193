"""Which rows are new: the conditions of each mode, cut into ranges that the worker plans and a task reads.

A range has both ends, fixed by the plan, so it is the same rows however often it is read (but for rows that change
meanwhile, which then belong to a later one).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millbeck.pipeline.connect.connectors.jdbc.dialect import Dialect


@dataclass(frozen=True, slots=True)
class Place:
    """How far a table is read: a number, a timestamp in microseconds, or both."""

    number: int | None = None
    moment: int | None = None

    @classmethod
    def of_offset(cls, offset: Mapping[str, Any] | None) -> Place:
        if not offset:
            return cls()
        moment, nanos = offset.get("timestamp"), offset.get("timestamp_nanos")
        if moment is not None:
            # The nanoseconds are those of the whole second, as in java.sql.Timestamp.
            moment = moment * 1000 if nanos is None else moment // 1000 * 1_000_000 + nanos // 1000
        return cls(offset.get("incrementing"), moment)

    def offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.number is not None:
            found["incrementing"] = self.number
        if self.moment is not None:
            found["timestamp"] = self.moment // 1000
            found["timestamp_nanos"] = self.moment % 1_000_000 * 1000
        return found


@dataclass(frozen=True, slots=True)
class Conditions:
    """The SQL of one table's modes; ``number`` and ``moment`` are expressions, or None."""

    dialect: Dialect
    number: str | None
    moment: str | None

    @property
    def order(self) -> str:
        keys = [each for each in (self.moment, self.number) if each is not None]
        return f" ORDER BY {', '.join(keys)}" if keys else ""

    def after(self, place: Place) -> tuple[list[str], list[Any]]:
        """Rows beyond a place."""
        number, moment = self.number, self.moment
        if moment is None or place.moment is None:
            found = [f"{each} IS NOT NULL" for each in (moment, number) if each is not None]
            if moment is None and number is not None and place.number is not None:
                return [f"{number} > %s"], [place.number]
            return found, []
        text = self.dialect.timestamp(place.moment)
        if number is None or place.number is None:
            return [f"{moment} > %s"], [text]
        return [f"({moment} > %s OR ({moment} = %s AND {number} > %s))"], [text, text, place.number]

    def up_to(self, place: Place) -> tuple[list[str], list[Any]]:
        """Rows not beyond a place."""
        number, moment = self.number, self.moment
        if moment is None:
            return ([f"{number} <= %s"], [place.number]) if number is not None else ([], [])
        assert place.moment is not None
        text = self.dialect.timestamp(place.moment)
        if number is None:
            return [f"{moment} <= %s"], [text]
        return [f"({moment} < %s OR ({moment} = %s AND {number} <= %s))"], [text, text, place.number]

    def before(self, moment_us: int) -> tuple[list[str], list[Any]]:
        """Rows whose timestamp is old enough."""
        if self.moment is None:
            return [], []
        return [f"{self.moment} < %s"], [self.dialect.timestamp(moment_us)]

    def last_of(self, source: str, place: Place, limit_us: int, count: int) -> tuple[str, list[Any]]:
        """The query of the last place among the next ``count`` rows."""
        texts, parameters = self.after(place)
        more_texts, more_parameters = self.before(limit_us)
        where = " AND ".join([*texts, *more_texts])
        names = [f"{each} AS {name}" for each, name in ((self.moment, "m"), (self.number, "n")) if each is not None]
        inner = f"SELECT {', '.join(names)} FROM {source} WHERE {where}{self.order} LIMIT {count}"
        order = ", ".join(f"{name.rpartition(' ')[2]} DESC" for name in names)
        return f"SELECT * FROM ({inner}) AS p ORDER BY {order} LIMIT 1", [*parameters, *more_parameters]

    def rows(self, names: str, source: str, start: Place, end: Place | None, suffix: str) -> tuple[str, list[Any]]:
        """The query of the rows from a place up to another; all rows without an end."""
        texts: list[str] = []
        parameters: list[Any] = []
        if end is not None:
            for found, given in (self.after(start), self.up_to(end)):
                texts += found
                parameters += given
        where = f" WHERE {' AND '.join(texts)}" if texts else ""
        tail = f" {suffix}" if suffix else ""
        return f"SELECT {names} FROM {source}{where}{self.order if end is not None else ''}{tail}", parameters
