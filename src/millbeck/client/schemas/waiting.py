"""Waits for a registry that does not answer, on threads that may wait, such as those of Spark's workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.transport import RegistryRefused

T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0


def answered(ask: Callable[[], T], wait_s: float) -> T:
    """The answer of a registry; one that does not answer is asked again until the time is over."""
    end_s = time.monotonic() + wait_s
    while True:
        try:
            return ask()
        except (UnknownSchema, RegistryRefused):
            raise
        except SchemaError:
            if time.monotonic() >= end_s:
                raise
            time.sleep(PAUSE_SECONDS)
