"""Needs pyspark: the demo's pipeline, as a user would write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from millbeck.pipeline.demo.orders import CUSTOMERS, ORDERS, REVENUE
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.windows import tumbling

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology


def build(topology: Topology) -> None:
    orders = topology.stream(ORDERS, value=json("customer STRING, cents BIGINT"))
    customers = topology.table(CUSTOMERS, value=json("region STRING"), store="customers")
    revenue = (
        orders.select_key(lambda order: order.value.customer)
        .left_join(customers, lambda order, customer: {"cents": order.cents, "region": customer.region})
        .group_by(lambda sale: sf.coalesce(sale.value.region, sf.lit("unknown")))
        .windowed_by(tumbling("5 minutes", grace="30 seconds"))
        .aggregate(lambda sale: {"cents": sf.sum(sale.value.cents)}, store="revenue")
    )
    revenue.map(
        lambda window: (
            window.key.key,
            {"window_start": sf.unix_millis(window.key.start), "total_cents": window.value.cents},
        )
    ).to(REVENUE)
