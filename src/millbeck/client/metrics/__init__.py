"""The metrics of the clients, under the names of Kafka's Java clients."""

from millbeck.client.metrics.prometheus import prometheus_text
from millbeck.client.metrics.registry import ClientMetrics, MetricName
from millbeck.client.metrics.reporters import MetricsReporter

__all__ = ["ClientMetrics", "MetricName", "MetricsReporter", "prometheus_text"]
