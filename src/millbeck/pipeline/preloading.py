"""Import the driver's Python modules on a thread while Java starts, which takes seconds without using Python.

A failed import is ignored here: the code that needs the module imports it again and reports the error.
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
    # Spark imports it, and pandas with it, when it first passes a value to Java.
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
