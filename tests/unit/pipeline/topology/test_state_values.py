"""Times from the state can be compared with those of records."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType, TimestampType

from millbeck.pipeline.topology.state_values import with_time_zones

AT = datetime(2026, 11, 19, 12, tzinfo=UTC)
HELD = AT.astimezone().replace(tzinfo=None)


def test_times_get_their_zone_wherever_they_are() -> None:
    struct = StructType([StructField("n", LongType()), StructField("at", TimestampType())])
    cases = [
        (TimestampType(), HELD, AT),
        (struct, Row(n=1, at=HELD), (1, AT)),
        (ArrayType(TimestampType()), [HELD, None], [AT, None]),
        (MapType(StringType(), TimestampType()), {"a": HELD}, {"a": AT}),
    ]
    for kind, held, expected in cases:
        convert = with_time_zones(kind)
        assert convert is not None
        assert convert(held) == expected
        assert convert(None) is None


def test_other_values_stay_as_they_are() -> None:
    for kind in (LongType(), ArrayType(LongType()), StructType([StructField("n", LongType())])):
        assert with_time_zones(kind) is None
