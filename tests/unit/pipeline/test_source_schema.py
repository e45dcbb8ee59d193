"""The columns of the source, and that asking for them loads nothing else."""

from __future__ import annotations

import subprocess
import sys

from millbeck.pipeline.source_schema import source_schema

PLANNING = """
import sys
from millbeck.pipeline.spark_format import MillbeckFormat
where = {"kafka.bootstrap.servers": "127.0.0.1:1"}
source, sink = MillbeckFormat({"subscribe": "t", **where}), MillbeckFormat({"topic": "t", **where})
schema = source.schema()
source.streamReader(schema), source.reader(schema)
sink.streamWriter(schema, False), sink.writer(schema, False)
print(*[name for name in ("asyncio", "millbeck.client.cluster", "numpy", "pyarrow") if name in sys.modules])
"""


def test_the_schema() -> None:
    assert source_schema(False).fieldNames() == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    ]
    assert source_schema(True)["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"


def test_what_only_plans_loads_no_client_and_no_arrow() -> None:
    done = subprocess.run([sys.executable, "-c", PLANNING], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
