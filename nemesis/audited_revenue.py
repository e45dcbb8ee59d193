"""The demo's pipeline, and a copy of every order beside it: what is lost or written twice shows one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.pipeline.demo import revenue
from millbeck.pipeline.demo.orders import ORDERS

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

COPIES = "orders-copied"
PIPELINE = {
    "name": "audited-revenue",
    "spark": {
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        # Java starts again and again, and never lives long enough to earn back what its second compiler costs.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    },
}


def build(topology: Topology) -> None:
    revenue.build(topology)
    topology.stream(ORDERS).to(COPIES)
