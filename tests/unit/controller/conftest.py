"""A cluster to decide about: images of one and of three brokers, options, and randomness from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from millbeck.controller import Controller, ControllerOptions, OptionRules, Registration
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.names import is_internal_topic
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    OptionSet,
    Scope,
    Section,
    Synonym,
    Update,
    at_least,
    option,
)
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, ConfigResource, Endpoint, MetadataImage, ResourceType
from millbeck.metadata.records import FeatureLevelRecord, MetadataRecord
from millbeck.storage.config import TOPIC_OPTIONS


class BrokerOptions(Section):
    log_dirs = option("log.dirs", LIST, ("/tmp",), doc="Read-only.")
    log_retention_ms = option("log.retention.ms", LONG, None, update=Update.CLUSTER_WIDE, doc="For all brokers.")
    advertised = option("advertised.listeners", LIST, (), update=Update.PER_BROKER, doc="For one broker.")
    num_partitions = option("num.partitions", INT, 1, valid=at_least(1), doc="Read-only.")
    log_cleanup_policy = option("log.cleanup.policy", LIST, ("delete",), update=Update.CLUSTER_WIDE, doc="A list.")
    auto_create = option("auto.create.topics.enable", BOOLEAN, True, doc="Read-only.")


class GroupOptions(Section):
    session_timeout_ms = option(
        "consumer.session.timeout.ms",
        INT,
        45000,
        valid=at_least(1),
        scope=Scope.GROUP,
        synonyms=[Synonym("group.consumer.session.timeout.ms")],
        doc="For one group.",
    )


def refuse_for_now(resource: ConfigResource, options: Mapping[str, str]) -> None:
    """As the server refuses what this release has not got yet."""
    if resource.type != ResourceType.TOPIC or is_internal_topic(resource.name):
        return
    if "compact" in options.get("cleanup.policy", ""):
        raise InvalidConfig("cleanup.policy=compact is not supported yet")
    for name in options:
        if name.startswith("remote."):
            raise InvalidConfig(f"{name} is not supported yet")


class SeededRandomness:
    def __init__(self, seed: int = 7) -> None:
        self._generator = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def uuid(self) -> bytes:
        return self._generator.randbytes(16)


def _controller(**options: Any) -> Controller:
    seed = options.pop("seed", 7)
    rules = OptionRules(
        topic=TOPIC_OPTIONS,
        broker=OptionSet(BrokerOptions),
        group=OptionSet(GroupOptions),
        static={},
        node_id=1,
        checks=[refuse_for_now],
    )
    return Controller(options=ControllerOptions(**options), rules=rules, randomness=SeededRandomness(seed))


def _replayed(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    return advance(image, records, offset=image.offset + max(len(records), 1), epoch=1, timestamp_ms=1)[0]


def _cluster(*broker_ids: int, racks: Mapping[int, str] | None = None) -> MetadataImage:
    controller = _controller()
    image = _replayed(EMPTY, [FeatureLevelRecord(name="metadata.version", feature_level=30)])
    for broker_id in broker_ids:
        registration = Registration(
            node_id=broker_id,
            incarnation_id=bytes([broker_id]) * 16,
            endpoints=(Endpoint(listener="PLAINTEXT", host="h", port=9092),),
            directories=(bytes([100 + broker_id]) * 16,),
            rack=(racks or {}).get(broker_id),
        )
        registered = controller.register_broker(image, registration)
        image = _replayed(image, registered.records)
        image = _replayed(image, controller.unfence_broker(image, broker_id, registered.response).records)
    return image


@pytest.fixture
def controller() -> Controller:
    return _controller(partition_count_default=2)


@pytest.fixture
def make_controller() -> Callable[..., Controller]:
    return _controller


@pytest.fixture
def replayed() -> Callable[[MetadataImage, list[MetadataRecord]], MetadataImage]:
    """The image after a decision's records."""
    return _replayed


@pytest.fixture
def one_broker() -> MetadataImage:
    return _cluster(1)


@pytest.fixture
def three_brokers() -> MetadataImage:
    return _cluster(1, 2, 3)


@pytest.fixture
def cluster_of() -> Callable[..., MetadataImage]:
    return _cluster
