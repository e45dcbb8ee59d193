"""Apache Avro's own checker, in Java, on thousands of generated pairs of schemas: its verdicts are the registry's."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pyspark
from hypothesis import HealthCheck, Phase, given, settings

from tests.interop.conftest import SYSTEM
from tests.unit.registry.formats.test_avro_compatibility import is_schema, pairs, reading

PAIRS = 5000
PROGRAM = Path(__file__).parent / "registries" / "AvroCompatibility.java"


def generated() -> list[tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}

    @settings(
        max_examples=2 * PAIRS,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(pairs())
    def collect(pair: tuple[Any, Any]) -> None:
        if len(found) < PAIRS and all(map(is_schema, pair)):
            found[json.dumps(pair)] = pair

    collect()
    return list(found.values())


def test_verdicts_are_those_of_apache_avro() -> None:
    assert SYSTEM
    made = generated()
    lines = "".join(f"{json.dumps(reader)}\t{json.dumps(writer)}\n" for reader, writer in made)
    jars = Path(pyspark.__file__).parent / "jars"
    command = ["java", "-cp", f"{jars}/*", str(PROGRAM)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    verdicts = done.stdout.splitlines()
    differing = [
        (reader, writer, verdict)
        for (reader, writer), verdict in zip(made, verdicts, strict=True)
        if (verdict == "COMPATIBLE") is not (reading(reader, writer) == []) and not verdict.startswith("INVALID")
    ]
    print(
        len(made), sum(verdict == "COMPATIBLE" for verdict in verdicts), sum(v.startswith("INVALID") for v in verdicts)
    )
    assert not differing, f"{len(differing)} differ, as {differing[:5]}"
    assert len(made) > PAIRS // 2
