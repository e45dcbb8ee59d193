"""Record objects for clients. The broker's data path never creates one."""

from __future__ import annotations

from millbeck.records.native.record import NO_TIMESTAMP, UNASSIGNED, Header, Record, RecordSource

__all__ = ["NO_TIMESTAMP", "UNASSIGNED", "Header", "Record", "RecordSource"]
