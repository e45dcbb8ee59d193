"""Record objects for clients. The broker's data path never creates one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.records.native.record import NO_TIMESTAMP, NOWHERE, UNASSIGNED, Header, RecordSource

if TYPE_CHECKING:
    from typing import Final, Generic

    from millbeck.records.typevars import K, V

    class Record(Generic[K, V]):
        """The generic type of `millbeck.records.native.record.Record` for type checkers."""

        def __init__(
            self,
            offset: int,
            timestamp: int,
            key: K | None,
            value: V | None,
            headers: tuple[Header, ...] = (),
            source: RecordSource = NOWHERE,
        ) -> None:
            self.offset: Final = offset
            self.timestamp: Final = timestamp
            self.key: Final = key
            self.value: Final = value
            self.headers: Final = headers
            self.source: Final = source

        @property
        def topic(self) -> str: ...
        @property
        def partition(self) -> int: ...
        @property
        def leader_epoch(self) -> int: ...
        @property
        def timestamp_type(self) -> int: ...
else:
    from millbeck.records.native.record import Record

__all__ = ["NO_TIMESTAMP", "UNASSIGNED", "Header", "Record", "RecordSource"]
