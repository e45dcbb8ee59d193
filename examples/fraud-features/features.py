"""What a user has paid in the last five minutes and in the last hour, for a model that looks for fraud."""

from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import hopping

PIPELINE = {"name": "fraud-features", "bootstrap_servers": "127.0.0.1:9092", "idle_after": "10 seconds"}
WINDOWS = {
    "features-5min": hopping("5 minutes", advance="1 minute", grace="30 seconds"),
    "features-1h": hopping("1 hour", advance="5 minutes", grace="30 seconds"),
}


def features(payment):
    value = payment.value
    return {
        "payments": sf.count(value),
        "cents": sf.sum(value.cents),
        "largest": sf.max(value.cents),
        "mean": sf.round(sf.avg(value.cents), 2),
        "merchants": sf.size(sf.collect_set(value.merchant)),
    }


def build(topology):
    payments = topology.stream("payments", value=json("cents BIGINT, merchant STRING"))
    for topic, window in WINDOWS.items():
        payments.group_by_key().windowed_by(window, emit="update").aggregate(features).to(topic)
