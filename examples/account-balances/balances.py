"""The balance of each account is the sum of its movements."""

from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json

PIPELINE = {"name": "account-balances", "bootstrap_servers": "127.0.0.1:9092"}


def build(topology):
    movements = topology.stream("movements", value=json("cents BIGINT"))
    (
        movements.group_by_key()
        .aggregate_columns(lambda r: {"cents": sf.sum(r.value.cents), "movements": sf.count(r.value)})
        .to("balances")
    )
