"""Records as objects: the client's side. The broker's data path never makes one."""

from __future__ import annotations

from millbeck.records.kernels.record import NO_TIMESTAMP, UNASSIGNED, Header, Record

__all__ = ["NO_TIMESTAMP", "UNASSIGNED", "Header", "Record"]
