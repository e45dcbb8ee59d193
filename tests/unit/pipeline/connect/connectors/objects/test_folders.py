"""The folders of files: patterns of Joda-Time, partitioners, where timestamps come from."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from millbeck.pipeline.connect.connectors.objects.joda import JodaFormat
from millbeck.pipeline.connect.connectors.objects.partitioners import (
    PARTITIONERS,
    extractor_of,
    without_separators,
)
from millbeck.pipeline.connect.connectors.objects.settings import OBJECT_SINK_CONFIG
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import Instant, timestamp_schema
from millbeck.pipeline.connect.model.schema import STRING_SCHEMA, Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.pipeline.connect.connectors.listed_records import sink_record

AT = 1_709_211_845_007  # 2024-02-29T13:04:05.007Z


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", "year=2024/month=02/day=29/hour=13"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSZZ", "2024-02-29T13:04:05.007+00:00"),
        ("yy M d H k K h m s a", "24 2 29 13 13 1 1 4 5 PM"),
        ("EEE EEEE MMM MMMM e D DDD", "Thu Thursday Feb February 4 60 060"),
        ("xxxx-'W'ww G C ''S SSSS", "2024-W09 AD 20 '0 0070"),
        ("Z z", "+0000 UTC"),
    ],
)
def test_patterns_of_joda(pattern: str, text: str) -> None:
    assert JodaFormat(pattern).format(AT, UTC) == text


def test_dates_are_pythons() -> None:
    chance = random.Random(5)
    pattern = JodaFormat("YYYY-MM-dd'T'HH:mm:ss.SSSZZ xxxx-'W'ww-e D")
    for _ in range(1000):
        zone = ZoneInfo(chance.choice(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"]))
        at = datetime.fromtimestamp(chance.randint(0, 4_000_000_000), zone).replace(microsecond=7000)
        year, week, day = at.isocalendar()
        wanted = f"{at.isoformat(timespec='milliseconds')} {year}-W{week:02}-{day} {at.timetuple().tm_yday}"
        assert pattern.format(int(at.timestamp() * 1000) // 1000 * 1000 + 7, zone) == wanted


@pytest.mark.parametrize("pattern", ["year=YYYY", "'open"])
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"(Illegal pattern component|not closed)"):
        JodaFormat(pattern)


def values(**settings: str) -> dict[str, Any]:
    given = {"format.class": "JsonFormat", "flush.size": "1", "s3.bucket.name": "b"}
    return OBJECT_SINK_CONFIG.parse(given | {name.replace("_", "."): text for name, text in settings.items()})


SCHEMA = struct_schema(
    [
        Field("region", Schema(SchemaType.STRING, True)),
        Field("at", timestamp_schema()),
        Field("text", STRING_SCHEMA),
        Field("inner", struct_schema([Field("level", Schema(SchemaType.INT32))])),
    ]
)


def record(region: str | None = "eu", at: int = AT, text: str = "2024-02-29T13:04:05Z", **other: Any) -> Any:
    inner = Struct.of(SCHEMA.fields[3].schema, {"level": 7})
    value = Struct.of(SCHEMA, {"region": region, "at": Instant(at), "text": text, "inner": inner})
    return sink_record(3, SCHEMA, value, partition=2, **other)


def test_records_are_divided_by_partition_field_and_time() -> None:
    def path(partitioner: str, given: Any, **settings: str) -> str:
        return PARTITIONERS[partitioner](values(**settings)).path(given)

    assert path("DefaultPartitioner", record()) == "partition=2"
    fields = {"partition_field_name": "region,inner.level"}
    assert path("FieldPartitioner", record(), **fields) == "region=eu/inner.level=7"
    assert path("FieldPartitioner", record("../x"), **fields) == "region=..%2Fx/inner.level=7"
    with pytest.raises(InvalidValue, match="region is null"):
        path("FieldPartitioner", record(None), **fields)
    with pytest.raises(InvalidValue, match="no field other"):
        path("FieldPartitioner", record(), partition_field_name="other")
    time = {"timestamp_extractor": "RecordField", "timestamp_field": "at"}
    assert path("HourlyPartitioner", record(), **time) == "year=2024/month=02/day=29/hour=13"
    assert path("DailyPartitioner", record(), timezone="Asia/Tokyo", **time) == "year=2024/month=02/day=29"
    assert path("DailyPartitioner", record(at=AT + 7_200_000), timezone="Asia/Tokyo", **time).endswith("day=01")
    assert path("DailyPartitioner", record(at=-1), **time) == "year=1969/month=12/day=31"
    spans = {"partition_duration_ms": "900000", "path_format": "HH-mm", **time}
    assert path("TimeBasedPartitioner", record(), **spans) == "13-00"
    assert path("TimeBasedPartitioner", record(at=AT + 900_000), **spans) == "13-15"


def test_days_are_local_ones_when_clocks_change() -> None:
    zone, time = ZoneInfo("Europe/Berlin"), {"timestamp_extractor": "RecordField", "timestamp_field": "at"}
    daily = PARTITIONERS["DailyPartitioner"](values(timezone="Europe/Berlin", **time))
    for start in (1_711_753_200, 1_729_893_600):  # the days around 31 March and 27 October 2024
        for hours in range(75):
            moment = start + hours * 3600
            at = datetime.fromtimestamp(moment, zone)
            assert daily.path(record(at=moment * 1000)) == f"year={at:%Y}/month={at:%m}/day={at:%d}"


def test_where_timestamps_come_from() -> None:
    def moment(given: Any, **settings: str) -> int:
        return extractor_of(values(**settings))(given)

    assert moment(record(timestamp=5), timestamp_extractor="Record") == 5
    with pytest.raises(InvalidValue, match="no timestamp"):
        moment(record(), timestamp_extractor="Record")
    field = {"timestamp_extractor": "RecordField"}
    assert moment(record(), timestamp_field="text", **field) == AT // 1000 * 1000
    assert moment(record(text="12"), timestamp_field="text", **field) == 12
    assert moment(record(text="2024-02-29T14:04:05+01:00"), timestamp_field="text", **field) == AT // 1000 * 1000
    assert moment(record(), timestamp_field="inner.level", **field) == 7
    assert moment(sink_record(0, None, {"a": {"b": 9}}), timestamp_field="a.b", **field) == 9
    with pytest.raises(InvalidValue, match=r"not a (date|timestamp)"):
        moment(record(text="today"), timestamp_field="text", **field)
    assert moment(record(), timestamp_extractor="Wallclock") > AT


@pytest.mark.parametrize(
    ("text", "part"), [("a b", "a b"), ("a/b=c", "a%2Fb%3Dc"), ("..", "%2E%2E"), ("", "__HIVE_DEFAULT_PARTITION__")]
)
def test_a_value_stays_in_its_folder(text: str, part: str) -> None:
    assert without_separators(text) == part
