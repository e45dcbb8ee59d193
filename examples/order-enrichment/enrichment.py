"""Orders get the region of their customer; revenue by region in windows of five minutes."""

from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import tumbling

PIPELINE = {
    "name": "order-enrichment",
    "bootstrap_servers": "127.0.0.1:9092",
    "master": "local[4]",
    "delivery": "exactly_once",
}


def build(topology):
    orders = topology.stream("orders", value=json("amount DOUBLE"))
    customers = topology.table("customers", value=json("name STRING, region STRING"))
    enriched = orders.left_join(customers, lambda order, customer: {"amount": order.amount, "region": customer.region})
    (
        enriched.select_key(lambda order: sf.coalesce(order.value.region, sf.lit("unknown")))
        .group_by_key()
        .windowed_by(tumbling("5 minutes", grace="30 seconds"))
        .aggregate(lambda order: {"total": sf.sum(order.value.amount)}, store="revenue-store")
        .map(lambda result: (result.key.key, {"start": result.key.start, "total": result.value.total}))
        .to("revenue-by-region-5min")
    )
