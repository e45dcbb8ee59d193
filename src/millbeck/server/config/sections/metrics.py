"""Options of the metrics endpoint, and of Kafka's metrics reporters."""

from __future__ import annotations

from millbeck.kernel.options import (
    INT,
    LIST,
    LONG,
    STRING,
    Importance,
    Section,
    Update,
    at_least,
    between,
    distinct,
    option,
)
from millbeck.kernel.units import MIB


class MetricsOptions(Section):
    host = option(
        "metrics.http.host",
        STRING,
        "127.0.0.1",
        doc="The address of the /metrics HTTP endpoint. Empty: every interface. Not in Kafka.",
    )
    port = option(
        "metrics.http.port",
        INT,
        9404,
        valid=between(0, 65535),
        doc="The port of /metrics; if it is in use, a free port is chosen and printed. Not in Kafka.",
    )
    metric_reporters = option(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        valid=distinct(),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Java classes of metrics reporters. Accepted for compatibility: metrics are served over HTTP, under the "
        "names of Kafka's JMX exporter.",
    )
    metrics_num_samples = option(
        "metrics.num.samples",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The number of samples of a rate. Accepted for compatibility: counters are exported instead of rates.",
    )
    metrics_sample_window_ms = option(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The time window of a sample. Accepted for compatibility: counters are exported instead of rates.",
    )
    metrics_recording_level = option(
        "metrics.recording.level",
        STRING,
        "INFO",
        importance=Importance.LOW,
        doc="The recording level of metrics. Accepted for compatibility: all metrics are recorded.",
    )
    kafka_metrics_reporters = option(
        "kafka.metrics.reporters",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.LOW,
        doc="Java classes of Yammer metrics reporters. Accepted for compatibility.",
    )
    kafka_metrics_polling_interval_secs = option(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The polling interval of the Yammer metrics reporters. Accepted for compatibility.",
    )
    telemetry_max_bytes = option(
        "telemetry.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The maximum size of the metrics a client pushes. Client telemetry is not collected in this release.",
    )
