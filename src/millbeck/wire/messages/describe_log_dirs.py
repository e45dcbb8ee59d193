"""DescribeLogDirs: what lies in each log directory."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct


@struct
class DescribableLogDirTopic:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsRequest:
    """Null topics ask for all."""

    topics: list[DescribableLogDirTopic] | None = array(of=DescribableLogDirTopic, nullable="0+")


@struct
class DescribeLogDirsPartition:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64(doc="How far a copy in the making is behind.")
    is_future_key: bool = boolean(doc="The copy will replace the log that is in use.")


@struct
class DescribeLogDirsTopic:
    name: str = string()
    partitions: list[DescribeLogDirsPartition] = array(of=DescribeLogDirsPartition)


@struct
class DescribeLogDirsResult:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[DescribeLogDirsTopic] = array(of=DescribeLogDirsTopic)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Size of the volume; -1 when unknown.")
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Free on the volume; -1 when unknown.")
    is_cordoned: bool = boolean(versions="5+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """Version 4 adds the size of the volume, version 5 whether the directory takes new partitions."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = array(of=DescribeLogDirsResult)
