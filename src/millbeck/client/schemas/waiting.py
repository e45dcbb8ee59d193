"""Retries while a registry does not answer, for threads that may block, such as those of Spark's workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from millbeck.client.schemas.errors import SchemaError, UnknownSchema
from millbeck.client.schemas.transport import RegistryRefused

T = TypeVar("T")

PAUSE_SECONDS: Final = 1.0


def answered(ask: Callable[[], T], wait_s: float) -> T:
    """The answer of a registry. While it does not answer, the request is repeated until the time is over."""
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
