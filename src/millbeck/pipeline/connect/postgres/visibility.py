"""Which transactions a snapshot sees: PostgreSQL's ``xmin:xmax:xip``, and the short numbers of the stream."""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.pipeline.connect.errors import InvalidValue

_SHORT: int = 1 << 32


@dataclass(frozen=True, slots=True)
class SnapshotXids:
    """Transactions below ``xmin`` are seen, from ``xmax`` on they are not, between all but those of ``running``."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> SnapshotXids:
        try:
            xmin, xmax, running = text.split(":")
            return cls(int(xmin), int(xmax), frozenset(map(int, filter(None, running.split(",")))))
        except ValueError:
            raise InvalidValue(f"{text[:100]!r} is no snapshot") from None

    def sees(self, short: int) -> bool:
        """Whether the effects of a transaction are seen, by the number that the stream has, without its epoch."""
        distance = (short - self.xmax) % _SHORT
        xid = self.xmax + (distance - _SHORT if distance >= _SHORT // 2 else distance)
        if xid >= self.xmax:
            return False
        return xid < self.xmin or xid not in self.running
