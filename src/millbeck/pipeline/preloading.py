"""Loads what a driver needs besides Spark while it waits for Java to start, which takes seconds and no Python.

What cannot be loaded is no failure here: whoever needs it is told when he imports it.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

OF_A_DRIVER: Final = (
    "millbeck.pipeline.topology.topology",
    "millbeck.pipeline.progress_groups",
    # Spark loads it, and pandas with it, when it first hands a value to Java.
    "pyspark.testing",
)


@contextmanager
def loading(modules: tuple[str, ...] = OF_A_DRIVER) -> Iterator[None]:
    thread = threading.Thread(target=_load, args=(modules,), name="millbeck-loading", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(modules: tuple[str, ...]) -> None:
    for module in modules:
        with suppress(Exception):
            importlib.import_module(module)
