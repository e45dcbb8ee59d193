"""The roles of users."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """A role includes those below it."""

    READ = 1
    WRITE = 2
    ADMIN = 3
