"""The controller role of a node: the `Controller`, its work while it is active, and its registration."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import Final

from millbeck.controller.config_rules import OptionRules
from millbeck.controller.machine import Controller
from millbeck.controller.options import ControllerOptions, TokenOptions
from millbeck.controller.policies import NO_POLICIES, AlterConfigPolicy, CreateTopicPolicy, Policies
from millbeck.controller.topic_bounds import NAME as TOPIC_BOUNDS
from millbeck.controller.topic_bounds import TopicBounds
from millbeck.kernel.errors import ApiError, InvalidConfig, UnsupportedVersion, from_code
from millbeck.metadata.features import CONTROLLER_REGISTRATION_FROM
from millbeck.metadata.image import Endpoint
from millbeck.server.broker import Broker
from millbeck.server.config.checks import ConfigChecks
from millbeck.server.config.sections.topics import TopicDefaultOptions, TopicPolicyOptions
from millbeck.server.metadata.active_controller import ActiveController
from millbeck.server.metadata.channels import ControllerChannels
from millbeck.server.seams import load_seam
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.wire.messages.nodes import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
    Feature,
    Listener,
)

REGISTRATION_SECONDS_MAX: Final = 30.0
RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


def make_policies(broker: Broker) -> Policies:
    """The policies configured by the settings. Raises `InvalidConfig`."""
    config = broker.config
    if not config.is_controller:
        return NO_POLICIES
    create, alter = (
        TopicDefaultOptions.create_topic_policy_class_name,
        TopicDefaultOptions.alter_config_policy_class_name,
    )
    create_name = config.topic_defaults.create_topic_policy_class_name
    alter_name = config.topic_defaults.alter_config_policy_class_name
    create_topic: CreateTopicPolicy | None = None
    if create_name == TOPIC_BOUNDS:
        options = config.topic_policy
        _check_pattern(options.name_pattern)
        create_topic = TopicBounds(
            name_pattern=options.name_pattern,
            replication_factor_min=options.replication_factor_min,
            partitions_min=options.partitions_min,
            partitions_max=options.partitions_max,
        )
    elif create_name:
        create_topic = load_seam(
            "millbeck.create_topic_policy", create.name, create_name, config.texts, method="validate"
        )
    alter_config: AlterConfigPolicy | None = None
    if alter_name:
        alter_config = load_seam(
            "millbeck.alter_config_policy", alter.name, alter_name, config.texts, method="validate"
        )

    return Policies(create_topic, alter_config, on_failure=broker.seam_failed)


def _check_pattern(pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidConfig(f"{TopicPolicyOptions.name_pattern.name}: {error}") from error


def make_controller(broker: Broker) -> Controller:
    """The `Controller`, configured from this node's configuration."""
    config = broker.config
    return Controller(
        options=ControllerOptions(
            partition_count_default=config.topic_defaults.num_partitions,
            replication_factor_default=config.topic_defaults.default_replication_factor,
            delete_topics=config.topic_defaults.delete_topic_enable,
            cluster_id=broker.cluster_id,
            session_timeout_ms=config.membership.broker_session_timeout_ms,
            rebalances_leaders=config.replication.auto_leader_rebalance_enable,
            rebalance_interval_ms=config.replication.leader_imbalance_check_interval_seconds * 1000,
            unclean_election_interval_ms=config.replication.unclean_leader_election_interval_ms,
            tokens=TokenOptions(
                secret=config.token_secret,
                lifetime_ms_max=config.tokens.lifetime_ms_max,
                expiry_time_ms=config.tokens.expiry_time_ms,
            ),
        ),
        rules=OptionRules(
            topic=TOPIC_OPTIONS,
            broker=config.option_set,
            group=config.group_option_set,
            static=config.texts,
            node_id=broker.node_id,
            checks=(ConfigChecks(config.texts).check,),
            isolation=broker.isolation,
        ),
        policies=make_policies(broker),
        randomness=broker.environment.randomness,
    )


class ControllerRole:
    def __init__(self, broker: Broker, channels: ControllerChannels) -> None:
        self._broker = broker
        self._channel = channels.controllers
        self.active = ActiveController(broker)

    async def join(self, endpoints: Sequence[Endpoint]) -> None:
        """Register this controller's endpoints, so that any controller can list all controllers (DescribeCluster)."""
        request = ControllerRegistrationRequest(
            controller_id=self._broker.node_id,
            incarnation_id=self._broker.environment.randomness.uuid(),
            listeners=[Listener(each.listener, each.host, each.port, each.security_protocol) for each in endpoints],
            features=[
                Feature(name, levels.min_level, levels.max_level)
                for name, levels in sorted(self._broker.config.supported_features.items())
            ],
        )
        while True:
            # A cluster cannot register controllers before its first metadata.version is committed, nor while that
            # version is too old.
            if self._broker.image.features.metadata_version >= CONTROLLER_REGISTRATION_FROM:
                try:
                    answer = await self._channel.request(
                        request, ControllerRegistrationResponse, timeout_s=REGISTRATION_SECONDS_MAX
                    )
                    if answer.error_code == 0:
                        return
                    if answer.error_code != UnsupportedVersion.code:
                        log.warning(
                            "registration of this controller was rejected: %s", from_code(answer.error_code).kafka_name
                        )
                except ApiError as error:
                    log.info("could not register this controller yet, retrying: %s", error)
            await asyncio.sleep(RETRY_SECONDS)
