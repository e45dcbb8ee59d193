"""Files of the object-store sink in a local directory: their cuts, names and contents, and the way back."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore")
pytest.importorskip("fastavro")

import pyarrow.parquet as pq

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors.connector_class import Delivery
from millbeck.pipeline.connect.connectors.debezium_types import MICRO_TIMESTAMP
from millbeck.pipeline.connect.connectors.interface import Backlog, OffsetRange, SinkReport, SinkShare
from millbeck.pipeline.connect.connectors.objects.sink import ObjectSink
from millbeck.pipeline.connect.connectors.objects.source import ObjectSource
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue
from millbeck.pipeline.connect.model.logical import (
    MS_PER_DAY,
    Instant,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32
from millbeck.pipeline.connect.model.record import SinkRecord, SourceRecord
from millbeck.pipeline.connect.model.schema import (
    BYTES_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.pipeline.connect.connectors.listed_records import ListedRecords, made, sink_record, written

A0 = TopicPartition("orders", 0)
OPTIONAL_INT = Schema(SchemaType.INT32, True)
INNER = struct_schema([Field("x", INT32_SCHEMA), Field("y", Schema(SchemaType.STRING, True))])
FIELDS: dict[str, tuple[Schema, list[Any]]] = {
    "i8": (Schema(SchemaType.INT8, True), [Int8(-128), Int8(127), None]),
    "i16": (Schema(SchemaType.INT16, True), [Int16(-(2**15)), None]),
    "i32": (Schema(SchemaType.INT32, True), [Int32(2**31 - 1), None]),
    "i64": (Schema(SchemaType.INT64, True), [-(2**63), 2**63 - 1, None]),
    "f32": (Schema(SchemaType.FLOAT32, True), [Float32(1.1), Float32(-math.inf), Float32(1e-45), None]),
    "f64": (Schema(SchemaType.FLOAT64, True), [0.1, math.inf, -math.inf, -0.0, 5e-324, None]),
    "yes": (Schema(SchemaType.BOOLEAN, True), [True, False, None]),
    "words": (Schema(SchemaType.STRING, True), ["", "naïve 🚀\n\t\x00", None]),
    "raw": (Schema(SchemaType.BYTES, True), [b"", bytes(range(256)), None]),
    "price": (
        decimal_schema(4, optional=True),
        [Decimal("-0.0001"), Decimal("9999999999999999999999999999999999.9999"), None],
    ),
    "day": (date_schema(optional=True), [Instant(days * MS_PER_DAY) for days in (-1, -719_528, 2_932_897, 10_000_000)]),
    "at": (time_schema(optional=True), [Instant(0), Instant(MS_PER_DAY - 1), None]),
    "moment": (timestamp_schema(optional=True), [Instant(-1), Instant(-(10**14)), Instant(10**15 + 7), None]),
    "micros": (Schema(SchemaType.INT64, True, name=MICRO_TIMESTAMP, version=1), [-1, 10**18 + 1, None]),
    "many": (array_schema(Schema(SchemaType.INT64, True), optional=True), [[], [1, None, 2], None]),
    "inner": (
        struct_schema(INNER.fields, optional=True),
        [None],
    ),
    "moments": (array_schema(timestamp_schema(), optional=True), [[Instant(-5), Instant(10**15)], None]),
    "named": (map_schema(STRING_SCHEMA, OPTIONAL_INT, optional=True), [{"a": Int32(1), "b": None}, {}]),
}  # fmt: skip
FIELDS["inner"][1].append(Struct.of(FIELDS["inner"][0], {"x": 5}))
VALUE = struct_schema([Field("id", INT64_SCHEMA), *(Field(name, schema) for name, (schema, _) in FIELDS.items())])


def generated(count: int) -> list[SinkRecord]:
    chance = random.Random(11)
    return [
        sink_record(
            n, VALUE, Struct.of(VALUE, {"id": n} | {name: chance.choice(found) for name, (_, found) in FIELDS.items()})
        )
        for n in range(count)
    ]


def settings(folder: Path, **more: str) -> dict[str, str]:
    given = {"store.url": folder.as_uri(), "format.class": "JsonFormat", "flush.size": "3"}
    return given | {name.replace("_", "."): text for name, text in more.items()}


def sink(folder: Path, **more: str) -> ObjectSink:
    found: ObjectSink = made(ObjectSink, settings(folder, **more))
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {each.relative_to(folder).as_posix(): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def plain(offset: int, **value: Any) -> SinkRecord:
    return sink_record(offset, None, value, timestamp=value.pop("timestamp", 0))


class Positions:
    def __init__(self, known: Mapping[str, Any] | None = None) -> None:
        self.known = dict(known or {})

    def get(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.known.get(str(dict(partition)))


def read_back(source: ObjectSource, positions: Positions | None = None) -> list[SourceRecord]:
    known = positions or Positions()
    found: list[SourceRecord] = []
    while True:
        plan = source.plan(known)  # type: ignore[arg-type]
        for share in plan.shares:
            for item in source.read(share):
                assert isinstance(item, SourceRecord)
                found.append(item)
                known.known[str(dict(item.source_partition or {}))] = dict(item.source_offset or {})
        if not plan.shares:
            return found


@pytest.mark.parametrize("form", ["ParquetFormat", "AvroFormat"])
def test_every_value_comes_back_as_it_was(tmp_path: Path, form: str) -> None:
    records = generated(100)
    listed = written(sink(tmp_path, format_class=form, flush_size="40"), records)
    assert listed.stops == {A0: 80}
    written(sink(tmp_path, format_class=form, flush_size="20"), records[80:])
    source = made(ObjectSource, {"store.url": tmp_path.as_uri(), "format.class": form, "share.files.max": "1"})
    found = read_back(source)
    assert [(each.topic, each.partition) for each in found] == [("orders", 0)] * 100
    for record, wanted in zip(found, records, strict=True):
        for name in ("id", *FIELDS):
            value, was = record.value[name], wanted.value[name]
            if isinstance(was, Struct):
                assert [each for _, each in value.items()] == [each for _, each in was.items()]
            else:
                assert value == was, name
            assert type(value) is type(was), name
            if isinstance(was, float):
                assert math.copysign(1, value) == math.copysign(1, was)
        if form == "AvroFormat":
            assert record.value_schema == VALUE


@pytest.mark.parametrize("form", ["ParquetFormat", "AvroFormat", "JsonFormat"])
def test_a_repetition_writes_the_same_objects(tmp_path: Path, form: str) -> None:
    records = generated(20)
    compression = "gzip" if form == "JsonFormat" else "none"
    for name in ("one", "two"):
        written(sink(tmp_path / name, format_class=form, flush_size="5", s3_compression_type=compression), records)
    # Another attempt that begins at a later cut makes the same of it, and one more makes it again.
    written(sink(tmp_path / "two", format_class=form, flush_size="5", s3_compression_type=compression), records[5:])
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert len(files(tmp_path / "one")) == 4


def test_names_and_lines_are_those_of_the_s3_connector(tmp_path: Path) -> None:
    listed = written(sink(tmp_path), [plain(n, id=n) for n in range(7, 14)])
    assert listed.stops == {A0: 13}
    assert files(tmp_path) == {
        "topics/orders/partition=0/orders+0+0000000007.json": b'{"id":7}\n{"id":8}\n{"id":9}\n',
        "topics/orders/partition=0/orders+0+0000000010.json": b'{"id":10}\n{"id":11}\n{"id":12}\n',
    }


def test_a_file_with_exactly_flush_size_records_is_complete(tmp_path: Path) -> None:
    assert written(sink(tmp_path), [plain(n, id=n) for n in range(6)]).stops == {}
    assert len(files(tmp_path)) == 2


def test_a_share_without_a_whole_file_writes_nothing(tmp_path: Path) -> None:
    assert written(sink(tmp_path), [plain(n, id=n) for n in range(2)]).stops == {A0: 0}
    assert files(tmp_path) == {}


def test_a_cut_has_a_file_for_each_folder(tmp_path: Path) -> None:
    partitioner = {"partitioner_class": "io.confluent.connect.storage.partitioner.FieldPartitioner"}
    records = [plain(n, region=region) for n, region in enumerate(["eu", "us", "eu", "eu", "us"])]
    listed = written(sink(tmp_path, partition_field_name="region", **partitioner), records)
    assert listed.stops == {A0: 3}
    assert files(tmp_path) == {
        "topics/orders/region=eu/orders+0+0000000000.json": b'{"region":"eu"}\n{"region":"eu"}\n',
        "topics/orders/region=us/orders+0+0000000001.json": b'{"region":"us"}\n',
    }


def test_the_interval_is_that_of_the_records_timestamps(tmp_path: Path) -> None:
    moments = [0, 500, 999, 1000, 1500, 2001, 5000]
    by_time = {"flush_size": "100", "rotate_interval_ms": "1000", "timestamp_extractor": "Record"}
    records = [plain(n, id=n, timestamp=moment) for n, moment in enumerate(moments)]
    listed = written(sink(tmp_path, **by_time), records)
    assert listed.stops == {A0: 6}
    assert [name[-15:-5] for name in sorted(files(tmp_path))] == ["0000000000", "0000000003", "0000000005"]


def test_a_new_schema_begins_a_new_file(tmp_path: Path) -> None:
    other = struct_schema([Field("id", INT64_SCHEMA), Field("more", Schema(SchemaType.STRING, True))])
    first = struct_schema([Field("id", INT64_SCHEMA)])
    records = [
        sink_record(n, schema, Struct.of(schema, {"id": n})) for n, schema in enumerate([first, first, other, first])
    ]
    listed = written(sink(tmp_path, flush_size="100", format_class="ParquetFormat"), records)
    assert listed.stops == {A0: 3}
    tables = [pq.read_table(each) for each in sorted(tmp_path.rglob("*.parquet"))]
    assert [(table.num_rows, table.column_names) for table in tables] == [(2, ["id"]), (1, ["id", "more"])]


def test_what_a_format_cannot_hold_is_rejected_alone(tmp_path: Path) -> None:
    schema = struct_schema([Field("d", decimal_schema(0, optional=True)), Field("s", Schema(SchemaType.STRING, True))])
    found: list[dict[str, Any]] = [{"d": Decimal(1)}, {"d": Decimal(10**38)}, {"s": "\ud800"}, {"d": Decimal(2)}]
    records = [sink_record(n, schema, Struct.of(schema, each)) for n, each in enumerate(found)]
    listed = written(
        sink(tmp_path, flush_size="2", format_class="ParquetFormat"), [*records, sink_record(4, None, None)]
    )
    assert [offset for offset, _ in listed.rejected] == [1, 2, 4]
    assert pq.read_table(next(tmp_path.rglob("*.parquet")))["d"].to_pylist() == [Decimal(1), Decimal(2)]
    with pytest.raises(InvalidValue, match=r"behavior\.on\.null\.values"):
        written(sink(tmp_path), [sink_record(4, None, None)], tolerates=False)
    assert not written(sink(tmp_path, behavior_on_null_values="ignore"), [sink_record(4, None, None)]).rejected
    with pytest.raises(InvalidValue, match="needs a schema"):
        written(sink(tmp_path, format_class="AvroFormat"), [plain(0, id=1)], tolerates=False)
    with pytest.raises(InvalidValue, match="ByteArrayConverter"):
        written(sink(tmp_path, format_class="ByteArrayFormat"), [plain(0, id=1)], tolerates=False)


def test_bytes_are_read_back(tmp_path: Path) -> None:
    lines = [b"one", b"", b"th\x00ree"]
    records = [sink_record(n, BYTES_SCHEMA, line) for n, line in enumerate(lines)]
    written(sink(tmp_path, format_class="ByteArrayFormat", s3_compression_type="gzip"), records)
    [(name, content)] = files(tmp_path).items()
    assert name.endswith(".bin.gz")
    assert gzip.decompress(content) == b"one\n\nth\x00ree\n"
    found = read_back(made(ObjectSource, {"store.url": tmp_path.as_uri(), "format.class": "ByteArrayFormat"}))
    assert [each.value for each in found] == lines


def test_objects_without_schemas_are_columns(tmp_path: Path) -> None:
    records = [plain(0, id=1, tags=["a"]), plain(1, id=2, more=0.5), plain(2, id=None)]
    written(sink(tmp_path, format_class="ParquetFormat"), records)
    table = pq.read_table(next(tmp_path.rglob("*.parquet")))
    assert table.to_pylist() == [
        {"id": 1, "tags": ["a"], "more": None},
        {"id": 2, "tags": None, "more": 0.5},
        {"id": None, "tags": None, "more": None},
    ]
    with pytest.raises(ConnectError, match="no common type"):
        written(sink(tmp_path, format_class="ParquetFormat"), [plain(0, a=1), plain(1, a="x"), plain(2, a=[])])


def test_the_source_goes_on_after_the_last_file(tmp_path: Path) -> None:
    by_hour = {"partitioner_class": "HourlyPartitioner", "timestamp_extractor": "Record", "flush_size": "4"}
    moments = [0, 7_200_000, 0, 7_200_000, 3_600_000, 0, 0, 0]
    written(sink(tmp_path, **by_hour), [plain(n, id=n, timestamp=moment) for n, moment in enumerate(moments)])
    source = made(ObjectSource, {"store.url": tmp_path.as_uri(), "format.class": "JsonFormat", "topics": "orders"})
    found = read_back(source)
    assert [each.value["id"] for each in found] == [0, 2, 1, 3, 4, 5, 6, 7]
    after = Positions({str(dict(found[3].source_partition or {})): found[3].source_offset})
    assert [each.value["id"] for each in read_back(source, after)] == [4, 5, 6, 7]
    written(sink(tmp_path), [sink_record(n, None, {"id": n}, topic="orders2") for n in range(3)])
    assert len(read_back(source)) == 8


def report(sink_made: ObjectSink, share: SinkShare, positions: dict[TopicPartition, int]) -> None:
    sink_made.commit([SinkReport(task=0, share=share, positions=positions)])


def test_an_incomplete_file_is_not_read_for_each_record(tmp_path: Path) -> None:
    writer = sink(tmp_path, flush_size="1000")
    writer.start()
    read = 0
    for end in range(1, 1000):
        plan = writer.plan({A0: Backlog(0, end)})
        for share in plan.shares:
            read += share.ranges[0].end - share.ranges[0].start
            report(writer, share, {A0: 0})
    assert read < 12_000
    [share] = writer.plan({A0: Backlog(0, 1000)}).shares
    assert share.ranges == (OffsetRange(A0, 0, 1000),)
    report(writer, share, {A0: 1000})
    assert writer.plan({A0: Backlog(1000, 1001)}).shares


def test_a_range_grows_until_it_has_a_whole_file(tmp_path: Path) -> None:
    writer = sink(tmp_path, flush_size="300000")
    writer.start()
    backlog = {A0: Backlog(0, 2_000_000)}
    [share] = writer.plan(backlog).shares
    assert share.ranges == (OffsetRange(A0, 0, 300_000),)
    report(writer, share, {A0: 0})  # most offsets had no record
    [share] = writer.plan(backlog).shares
    assert share.ranges == (OffsetRange(A0, 0, 600_000),)


def test_the_schedule_completes_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10_000_500]
    monkeypatch.setattr("millbeck.pipeline.connect.connectors.objects.sink.now_ms", lambda: now[0])
    writer = sink(tmp_path, flush_size="1000", rotate_schedule_interval_ms="60000")
    assert writer.delivery is Delivery.AT_LEAST_ONCE
    writer.start()
    plan = writer.plan({A0: Backlog(0, 2)})
    assert plan.again_s == pytest.approx(19.5)
    report(writer, plan.shares[0], {A0: 0})
    now[0] += 20_000
    plan = writer.plan({A0: Backlog(0, 2)})
    assert plan.shares[0].payload == "flush"
    listed = ListedRecords([plain(0, id=0), plain(1, id=1)])
    writer.write(plan.shares[0], listed)
    assert listed.stops == {}
    assert len(files(tmp_path)) == 1


def test_delivery_and_mistakes(tmp_path: Path) -> None:
    assert sink(tmp_path).delivery is Delivery.DETERMINISTIC
    assert sink(tmp_path, partitioner_class="HourlyPartitioner").delivery is Delivery.AT_LEAST_ONCE
    assert sink(tmp_path, partitioner_class="HourlyPartitioner", timestamp_extractor="Record").delivery is (
        Delivery.DETERMINISTIC
    )
    wrong: dict[str, str | None] = {"name": "n", "connector.class": "S3Sink", "topics": "t", "flush.size": "1"}
    found = validated(wrong | {"format.class": "io.confluent.connect.s3.format.orc.OrcFormat"})
    assert "there are ParquetFormat" in found.entry("format.class").value.errors[0]
    found = validated(wrong | {"format.class": "JsonFormat"})
    assert "name the bucket" in found.entry("s3.bucket.name").value.errors[0]
    wrong |= {"format.class": "JsonFormat", "s3.bucket.name": "b", "partitioner.class": "TimeBasedPartitioner"}
    found = validated(wrong)
    assert found.entry("partition.duration.ms").value.errors
    assert found.entry("path.format").value.errors
    found = validated(wrong | {"path.format": "year=YYYY", "timezone": "Moon/Base", "store.url": "ftp://x"})
    assert "Illegal pattern component" in found.entry("path.format").value.errors[0]
    assert found.entry("timezone").value.errors
    assert not list(sink(tmp_path).check())
    assert json.dumps(found.description())
