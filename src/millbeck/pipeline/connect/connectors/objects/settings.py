"""The settings of the object-store connectors, under the names of Confluent's S3 connectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from millbeck.pipeline.connect.config.checks import at_least, non_empty_text, one_of, one_of_ignoring_case
from millbeck.pipeline.connect.config.definitions import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Check,
    ConfigDef,
    ConfigKey,
    Importance,
)
from millbeck.pipeline.connect.connectors.connector_class import ConnectorClass, ConnectorKind, Delivery, SettingProblem
from millbeck.pipeline.connect.connectors.objects.joda import JodaFormat

_PACKAGE: Final = "millbeck.pipeline.connect.connectors.objects"
FORMATS: Final = ("ParquetFormat", "AvroFormat", "JsonFormat", "ByteArrayFormat")
PARTITIONER_NAMES: Final = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)
_TIME_BASED: Final = PARTITIONER_NAMES[2:]
_EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")
_HIGH, _LOW = Importance.HIGH, Importance.LOW


def simple_name(text: str) -> str:
    return text.rpartition(".")[2]


def _class_of(*names: str) -> Check:
    listed = ", ".join(names)
    return Check(lambda value: None if value and simple_name(value) in names else f"there are {listed}", f"[{listed}]")


def _checked_by(parse: Callable[[str], object], allowed: str) -> Check:
    def problem(value: str | None) -> str | None:
        try:
            if value:
                parse(value)
        except (ValueError, KeyError, OSError) as error:
            return str(error) or f"expected {allowed}"
        return None

    return Check(problem, allowed)


_STORE: Final = (
    ConfigKey(
        name="store.url",
        kind=STRING,
        default=None,
        importance=_HIGH,
        doc="Where the files are: file:///directory, s3://bucket, gs://bucket or az://container, each with folders; or "
        "the http(s) address of a server that speaks S3, for s3.bucket.name. Default: S3 in s3.region.",
        group="Store",
        order=1,
    ),
    ConfigKey(
        name="s3.bucket.name",
        kind=STRING,
        default=None,
        importance=_HIGH,
        doc="The S3 bucket, unless store.url names one.",
        group="Store",
        order=2,
    ),
    ConfigKey(
        name="s3.region", kind=STRING, default="us-west-2", importance=_HIGH, doc="The region.", group="Store", order=3
    ),
    ConfigKey(
        name="aws.access.key.id",
        kind=STRING,
        default=None,
        doc="The access key; default: the environment's, a profile's or the machine's.",
        group="Store",
        order=4,
    ),
    ConfigKey(
        name="aws.secret.access.key",
        kind=PASSWORD,
        default=None,
        doc="The secret of the access key.",
        group="Store",
        order=5,
    ),
    ConfigKey(
        name="gcs.credentials.json",
        kind=PASSWORD,
        default=None,
        doc="For gs: the JSON of a service account; default: the machine's.",
        group="Store",
        order=6,
    ),
    ConfigKey(
        name="azure.storage.account",
        kind=STRING,
        default=None,
        doc="For az: the storage account.",
        group="Store",
        order=7,
    ),
    ConfigKey(
        name="azure.storage.key",
        kind=PASSWORD,
        default=None,
        doc="For az: the account's key; default: the machine's identity.",
        group="Store",
        order=8,
    ),
    ConfigKey(
        name="topics.dir",
        kind=STRING,
        default="topics",
        importance=_HIGH,
        doc="The folder of all files; empty: none.",
        group="Store",
        order=9,
    ),
    ConfigKey(
        name="directory.delim",
        kind=STRING,
        default="/",
        check=one_of("/"),
        doc="What separates folders.",
        group="Store",
        order=10,
    ),
    ConfigKey(
        name="file.delim",
        kind=STRING,
        default="+",
        check=non_empty_text(),
        doc="What separates topic, partition and offset in the name of a file.",
        group="Store",
        order=11,
    ),
)
_FORMAT: Final = (
    ConfigKey(
        name="format.class",
        kind=CLASS,
        check=_class_of(*FORMATS),
        importance=_HIGH,
        doc="The format of files: ParquetFormat, AvroFormat, JsonFormat (a line of JSON for each record) or "
        "ByteArrayFormat (the bytes of values; use ByteArrayConverter).",
        group="Format",
        order=1,
    ),
    ConfigKey(
        name="format.bytearray.extension",
        kind=STRING,
        default=".bin",
        importance=_LOW,
        doc="The end of the names of files of ByteArrayFormat.",
        group="Format",
        order=2,
    ),
    ConfigKey(
        name="format.bytearray.separator",
        kind=STRING,
        default="\n",
        importance=_LOW,
        doc="What stands behind each record in files of ByteArrayFormat.",
        group="Format",
        order=3,
    ),
)

OBJECT_SINK_CONFIG: Final = ConfigDef(
    *_STORE,
    ConfigKey(
        name="filename.offset.zero.pad.width",
        kind=INT,
        default=10,
        check=at_least(0),
        importance=_LOW,
        doc="How many digits the offset in a file's name has at least.",
        group="Store",
        order=12,
    ),
    *_FORMAT,
    ConfigKey(
        name="parquet.codec",
        kind=STRING,
        default="snappy",
        check=one_of("none", "snappy", "gzip", "lz4", "zstd", "brotli"),
        importance=_LOW,
        doc="The compression of Parquet files.",
        group="Format",
        order=4,
    ),
    ConfigKey(
        name="avro.codec",
        kind=STRING,
        default="null",
        check=one_of("null", "deflate", "bzip2"),
        importance=_LOW,
        doc="The compression of Avro files.",
        group="Format",
        order=5,
    ),
    ConfigKey(
        name="s3.compression.type",
        kind=STRING,
        default="none",
        check=one_of("none", "gzip"),
        importance=_LOW,
        doc="The compression of files of JsonFormat and ByteArrayFormat; their names end with .gz then.",
        group="Format",
        order=6,
    ),
    ConfigKey(
        name="json.decimal.format",
        kind=STRING,
        default="BASE64",
        check=one_of_ignoring_case("BASE64", "NUMERIC"),
        importance=_LOW,
        doc="How JsonFormat writes Decimals.",
        group="Format",
        order=7,
    ),
    ConfigKey(
        name="schema.compatibility",
        kind=STRING,
        default="NONE",
        check=one_of("NONE"),
        doc="NONE: each change of the schema begins a new file. There is no other.",
        group="Format",
        order=8,
    ),
    ConfigKey(
        name="flush.size",
        kind=INT,
        check=at_least(1),
        importance=_HIGH,
        doc="After how many records of a log partition its files are complete.",
        group="Files",
        order=1,
    ),
    ConfigKey(
        name="rotate.interval.ms",
        kind=LONG,
        default=-1,
        doc="The span of timestamps (of timestamp.extractor) that a file has at most; -1: any. With it, a record of "
        "another folder also completes the files before.",
        group="Files",
        order=2,
    ),
    ConfigKey(
        name="rotate.schedule.interval.ms",
        kind=LONG,
        default=-1,
        doc="How often files are completed by the worker's clock, whatever they have; -1: never. The cuts "
        "are no longer "
        "a function of the records then, and delivery is at least once.",
        group="Files",
        order=3,
    ),
    ConfigKey(
        name="behavior.on.null.values",
        kind=STRING,
        default="fail",
        check=one_of_ignoring_case("fail", "ignore"),
        doc="What happens to records without a value: they are rejected, or left out.",
        group="Files",
        order=4,
    ),
    ConfigKey(
        name="partitioner.class",
        kind=CLASS,
        default="io.confluent.connect.storage.partitioner.DefaultPartitioner",
        check=_class_of(*PARTITIONER_NAMES),
        importance=_HIGH,
        doc="How records are divided into folders.",
        group="Partitioner",
        order=1,
    ),
    ConfigKey(
        name="partition.field.name",
        kind=LIST,
        default=(),
        doc="For FieldPartitioner: the fields that name the folders; a path has dots.",
        group="Partitioner",
        order=2,
    ),
    ConfigKey(
        name="partition.duration.ms",
        kind=LONG,
        default=-1,
        doc="For TimeBasedPartitioner: the span of a folder.",
        group="Partitioner",
        order=3,
    ),
    ConfigKey(
        name="path.format",
        kind=STRING,
        default="",
        check=_checked_by(JodaFormat, "a pattern of Joda-Time"),
        doc="For TimeBasedPartitioner: the names of folders, such as 'year'=YYYY/'month'=MM/'day'=dd.",
        group="Partitioner",
        order=4,
    ),
    ConfigKey(
        name="locale",
        kind=STRING,
        default="en-US",
        importance=_LOW,
        doc="Accepted; names of months and days are English.",
        group="Partitioner",
        order=5,
    ),
    ConfigKey(
        name="timezone",
        kind=STRING,
        default="UTC",
        check=_checked_by(ZoneInfo, "a time zone such as Europe/Berlin"),
        doc="The time zone of folders.",
        group="Partitioner",
        order=6,
    ),
    ConfigKey(
        name="timestamp.extractor",
        kind=STRING,
        default="Wallclock",
        check=Check(
            lambda value: (
                None
                if value and simple_name(value).removesuffix("TimestampExtractor") in _EXTRACTORS
                else f"there are {', '.join(_EXTRACTORS)}"
            ),
            f"[{', '.join(_EXTRACTORS)}]",
        ),
        doc="Where timestamps are taken from: Record is the record's own, RecordField a field of its value. "
        "Wallclock is "
        "the worker's clock: the same record may get into another file when it is written again.",
        group="Partitioner",
        order=7,
    ),
    ConfigKey(
        name="timestamp.field",
        kind=STRING,
        default="timestamp",
        doc="For timestamp.extractor=RecordField: the field; a path has dots.",
        group="Partitioner",
        order=8,
    ),
)


def uses_time(values: Mapping[str, Any]) -> bool:
    return simple_name(values["partitioner.class"]) in _TIME_BASED or values["rotate.interval.ms"] > 0


def is_wallclock(values: Mapping[str, Any]) -> bool:
    return uses_time(values) and simple_name(values["timestamp.extractor"]).startswith("Wallclock")


def _store_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    url = values["store.url"] or ""
    scheme = url.partition(":")[0].lower()
    known = ("", "file", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https")
    if scheme not in known:
        yield SettingProblem("store.url", "expected file:, s3:, gs:, az: or the http(s) address of an S3 server")
    if scheme in ("", "http", "https") and not values["s3.bucket.name"]:
        yield SettingProblem("s3.bucket.name", "name the bucket, or a store with store.url")


def _sink_problems(values: Mapping[str, Any]) -> Iterable[SettingProblem]:
    yield from _store_problems(values)
    partitioner = simple_name(values["partitioner.class"])
    if partitioner == "FieldPartitioner" and not values["partition.field.name"]:
        yield SettingProblem("partition.field.name", "FieldPartitioner needs the fields that name the folders")
    if partitioner == "TimeBasedPartitioner":
        if values["partition.duration.ms"] <= 0:
            yield SettingProblem("partition.duration.ms", "TimeBasedPartitioner needs the span of a folder, in ms")
        if not values["path.format"]:
            yield SettingProblem("path.format", "TimeBasedPartitioner needs a pattern: 'year'=YYYY/'month'=MM/'day'=dd")
    if (
        simple_name(values["format.class"]) in ("ParquetFormat", "AvroFormat")
        and values["s3.compression.type"] != "none"
    ):
        yield SettingProblem(
            "s3.compression.type", "is for JsonFormat and ByteArrayFormat: use parquet.codec or avro.codec"
        )


OBJECT_SINK: Final = ConnectorClass(
    name="io.confluent.connect.s3.S3SinkConnector",
    kind=ConnectorKind.SINK,
    doc="Files in S3, GCS, Azure or a local directory.",
    delivery=Delivery.DETERMINISTIC,
    implementation=f"{_PACKAGE}.sink:ObjectSink",
    problems=_sink_problems,
    config_def=OBJECT_SINK_CONFIG,
    extra="objects",
)

OBJECT_SOURCE_CONFIG: Final = ConfigDef(
    *_STORE,
    *_FORMAT,
    ConfigKey(
        name="topics",
        kind=LIST,
        default=(),
        doc="The topics whose files are read: the folders in topics.dir; default: all of them.",
        group="Source",
        order=1,
    ),
    ConfigKey(
        name="s3.poll.interval.ms",
        kind=LONG,
        default=60_000,
        check=at_least(0),
        doc="How often new files are looked for.",
        group="Source",
        order=2,
    ),
    ConfigKey(
        name="share.files.max",
        kind=INT,
        default=100,
        check=at_least(1),
        importance=_LOW,
        doc="How many files of a log partition are read in one turn at most, and not more than 64 MiB after the first.",
        group="Source",
        order=3,
    ),
    ConfigKey(
        name="keep.partitions",
        kind=BOOLEAN,
        default=True,
        importance=_LOW,
        doc="Whether records go to the partition that they came from; otherwise the producer chooses one.",
        group="Source",
        order=4,
    ),
)


def _offset_problem(partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> str | None:
    if not {"topic", "partition"} <= set(partition):
        return "Partition objects should contain the keys 'topic' and 'partition'"
    if offset is not None and not {"start", "path"} <= set(offset):
        return "Offset objects should either be null or contain the keys 'start' and 'path'"
    return None


OBJECT_SOURCE: Final = ConnectorClass(
    name="io.confluent.connect.s3.source.S3SourceConnector",
    kind=ConnectorKind.SOURCE,
    doc="The records of files that the S3 sink has written.",
    implementation=f"{_PACKAGE}.source:ObjectSource",
    problems=_store_problems,
    offset_problem=_offset_problem,
    config_def=OBJECT_SOURCE_CONFIG,
    extra="objects",
)
