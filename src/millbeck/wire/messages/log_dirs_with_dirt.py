"""DescribeLogDirs as millbeck's own tools get it: Kafka's answer, and how dirty compacted logs are in a tagged field.

Only a client that calls itself millbeck gets it, so that everybody else's bytes are Kafka's own. A broker that does not
send the field, Apache Kafka's for one, leaves the default: unknown.
"""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, float64, int16, int32, int64, message, string, struct

UNKNOWN_RATIO = -1.0


@struct
class LogWithDirt:
    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64(doc="How far a copy in the making is behind.")
    is_future_key: bool = boolean(doc="The copy will replace the log that is in use.")
    dirty_ratio: float = float64(
        versions="2+", tag=10_000, default=-1.0, ignorable=True, doc="Of a compacted log; -1 when there is none."
    )


@struct
class TopicWithDirt:
    name: str = string()
    partitions: list[LogWithDirt] = array(of=LogWithDirt)


@struct
class LogDirWithDirt:
    error_code: int = int16()
    log_dir: str = string()
    topics: list[TopicWithDirt] = array(of=TopicWithDirt)
    total_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Size of the volume; -1 when unknown.")
    usable_bytes: int = int64(versions="4+", default=-1, ignorable=True, doc="Free on the volume; -1 when unknown.")
    is_cordoned: bool = boolean(versions="5+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=35, versions="1-5", flexible="2+")
class LogDirsWithDirt:
    """`DescribeLogDirsResponse` and one field more."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16(versions="3+", ignorable=True)
    results: list[LogDirWithDirt] = array(of=LogDirWithDirt)
