"""Metrics: the endpoint this node has, and the reporters that Kafka has."""

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
        "metrics.http.host", STRING, "127.0.0.1", doc="Where /metrics listens. Empty: every interface. Not in Kafka."
    )
    port = option(
        "metrics.http.port",
        INT,
        9404,
        valid=between(0, 65535),
        doc="The port of /metrics; a free one is taken, and printed, when it is in use. Not in Kafka.",
    )
    metric_reporters = option(
        "metric.reporters",
        LIST,
        ("org.apache.kafka.common.metrics.JmxReporter",),
        valid=distinct(),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="Java classes that report metrics. Accepted for compatibility: metrics are served over HTTP, under the "
        "names that Kafka's have there.",
    )
    metrics_num_samples = option(
        "metrics.num.samples",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="Samples behind a rate. Accepted for compatibility: counters are served as they are.",
    )
    metrics_sample_window_ms = option(
        "metrics.sample.window.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="Length of a sample. Accepted for compatibility: counters are served as they are.",
    )
    metrics_recording_level = option(
        "metrics.recording.level",
        STRING,
        "INFO",
        importance=Importance.LOW,
        doc="How many metrics are kept. Accepted for compatibility: all of them are.",
    )
    kafka_metrics_reporters = option(
        "kafka.metrics.reporters",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.LOW,
        doc="Further Java classes that report metrics. Accepted for compatibility.",
    )
    kafka_metrics_polling_interval_secs = option(
        "kafka.metrics.polling.interval.secs",
        INT,
        10,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often those classes are called. Accepted for compatibility.",
    )
    telemetry_max_bytes = option(
        "telemetry.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The most metrics a client may push at once. Clients are not asked for metrics in this release.",
    )
