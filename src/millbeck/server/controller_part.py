"""What a node with the role controller is made of: the decisions, and which of its settings they follow."""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.controller.config_rules import OptionRules
from millbeck.controller.machine import Controller
from millbeck.controller.nodes import Registration
from millbeck.controller.options import ControllerOptions
from millbeck.metadata.image import Endpoint
from millbeck.server.broker import Broker
from millbeck.server.config_checks import ConfigChecks
from millbeck.storage.config import TOPIC_OPTIONS


class ControllerPart:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        config = broker.config
        broker.controller = Controller(
            options=ControllerOptions(
                partition_count_default=config.topic_defaults.num_partitions,
                replication_factor_default=config.topic_defaults.default_replication_factor,
                delete_topics=config.topic_defaults.delete_topic_enable,
                cluster_id=broker.cluster_id,
                session_timeout_ms=config.membership.broker_session_timeout_ms,
            ),
            rules=OptionRules(
                topic=TOPIC_OPTIONS,
                broker=config.option_set,
                group=config.group_option_set,
                static=config.texts,
                node_id=broker.node_id,
                checks=(ConfigChecks(config.texts).check,),
            ),
            randomness=broker.environment.randomness,
        )

    async def join(self, endpoints: Sequence[Endpoint]) -> None:
        """Say where this controller listens, for those who ask any controller for all of them."""
        broker = self._broker
        registration = Registration(
            node_id=broker.node_id,
            incarnation_id=broker.environment.randomness.uuid(),
            endpoints=tuple(endpoints),
        )
        await broker.quorum.submit(lambda image: broker.controller.register_controller(image, registration))
