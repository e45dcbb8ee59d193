"""Where a module of somebody else is missing, the error names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from millbeck.kernel.extras import needs_extra

NEEDED = {
    "millbeck.pipeline.session": ("pyspark", "spark"),
    "millbeck.pipeline.topology.serdes": ("pyspark", "spark"),
    "millbeck.client.schemas.avro": ("fastavro", "schemas"),
    "millbeck.client.schemas.json_schema": ("jsonschema_rs", "schemas"),
    "millbeck.client.schemas.protobuf": ("google.protobuf.descriptor", "schemas"),
}


PROGRAM = f"""
import importlib, sys
for module, (missing, _) in {NEEDED}.items():
    sys.modules[missing] = None
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_a_missing_package_is_an_error_that_names_the_extra() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    extras = [line.partition(": pip install ")[2] for line in done.stdout.splitlines()]
    assert extras == [f"'millbeck[{extra}]'" for _, extra in NEEDED.values()], done.stdout


def test_a_module_of_this_package_that_is_missing_is_no_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'millbeck.nothing'$"), needs_extra("spark"):
        import millbeck.nothing  # type: ignore[import-not-found] # noqa: F401
