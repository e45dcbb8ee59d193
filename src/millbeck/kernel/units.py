"""Units of size and time, for expressions such as ``1 * GIB`` and ``7 * DAY_MS``."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

INT_MAX = 2**31 - 1
"""The largest value of Java's int, which means "no limit" for many options."""
LONG_MAX = 2**63 - 1
"""The largest value of Java's long."""
