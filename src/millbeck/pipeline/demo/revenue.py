"""Needs pyspark: the demo's pipeline, as a user would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as sf

from millbeck.pipeline.demo.orders import CUSTOMERS, ORDERS, REGIONS, REVENUE, UNKNOWN
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import tumbling

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

SALES: Final = "sales"
"""The name under which Spark reports each batch's revenue by region, before any window has closed."""


def build(topology: Topology) -> None:
    orders = topology.stream(ORDERS, value=json("customer STRING, cents BIGINT"))
    customers = topology.table(CUSTOMERS, value=json("region STRING"), store="customers")
    sales = orders.select_key(lambda order: order.value.customer).left_join(
        customers, lambda order, customer: {"cents": order.cents, "region": customer.region}
    )
    region = sf.coalesce(sf.col("value.region"), sf.lit(UNKNOWN))
    totals = [sf.sum(sf.when(region == name, sf.col("value.cents"))).alias(name) for name in (*REGIONS, UNKNOWN)]
    revenue = (
        topology.stream_of(sales.frame.observe(SALES, *totals))
        .group_by(lambda sale: sf.coalesce(sale.value.region, sf.lit(UNKNOWN)))
        .windowed_by(tumbling("1 minute", grace="30 seconds"), emit="final")
        .aggregate(lambda sale: {"cents": sf.sum(sale.value.cents)}, store="revenue")
    )
    revenue.map(
        lambda window: (
            window.key.key,
            {"window_start": sf.unix_millis(window.key.start), "total_cents": window.value.cents},
        )
    ).to(REVENUE)
