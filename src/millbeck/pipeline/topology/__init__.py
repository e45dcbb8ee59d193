"""Topologies in the vocabulary of Kafka Streams, on Spark's Structured Streaming and nothing else.

    from pyspark.sql import functions as sf

    from millbeck.pipeline.topology.serdes import json
    from millbeck.pipeline.topology.topology import Topology
    from millbeck.pipeline.topology.windows import tumbling

    def build(topology: Topology) -> None:
        orders = topology.stream("orders", value=json("customer STRING, amount DOUBLE"))
        customers = topology.table("customers", value=json("region STRING"))
        (orders.select_key(lambda order: order.value.customer)
            .left_join(customers, lambda order, customer: {"amount": order.amount, "region": customer.region})
            .group_by(lambda sale: sale.value.region)
            .windowed_by(tumbling("5 minutes", grace="30 seconds"))
            .aggregate(lambda sale: {"total": sf.sum(sale.value.amount)})
            .to("revenue-by-region-5min"))

Each method describes a DataFrame; nothing runs before the topology is started. Functions given to stateless operators,
joins and windowed aggregates are called once, while the topology is built, with columns, and Spark runs the expression
they return; `reduce` and `aggregate` without a window run Python functions on values. A topology becomes one query that
writes all its outputs, so that with exactly-once delivery a batch appears in all of them or in none. Operations that
Spark does not support raise `TopologyError` at once.

`keyed` (the logic of one key, pure Python), `windows` (declared, pure), `stateful` (keyed logic in Spark's state),
`state_values`, `serdes`, `fitting` (columns to a schema's type), `paths` (steps without state, side by side),
`watermarks` (with idle sources), `streams`, `tables`, `global_tables`, `grouped`, `salting` (parts of hot keys),
`changelogs` (published stores), `checkpoints` (their offsets and the query's sources), `topology`, `outline` (a
description of shuffles and stores for users), `budget` and `state_sizes` (what they cost).
"""

from millbeck.kernel.extras import needs_extra

with needs_extra("spark"):
    import pyspark  # noqa: F401
