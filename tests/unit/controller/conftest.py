"""A cluster to decide about: images of one and of three brokers, options, and randomness from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from millbeck.controller import Controller, ControllerOptions, NodeRegistration, OptionRules
from millbeck.controller.result import finished
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
from millbeck.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord, PartitionRecord, TopicRecord
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


def refuse_for_now(resource: ConfigResource, options: Mapping[str, str], changed: Collection[str]) -> None:
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


def _rules() -> OptionRules:
    return OptionRules(
        topic=TOPIC_OPTIONS,
        broker=OptionSet(BrokerOptions),
        group=OptionSet(GroupOptions),
        static={},
        node_id=1,
        checks=[refuse_for_now],
    )


def _controller(**options: Any) -> Controller:
    seed = options.pop("seed", 7)
    return Controller(options=ControllerOptions(**options), rules=_rules(), randomness=SeededRandomness(seed))


def _replayed(image: MetadataImage, records: list[MetadataRecord]) -> MetadataImage:
    if not records:
        return image
    return advance(image, records, offset=image.offset + len(records), epoch=1, timestamp_ms=1)[0]


def _cluster(
    *broker_ids: int, racks: Mapping[int, str] | None = None, levels: Mapping[str, int] | None = None
) -> MetadataImage:
    controller = _controller()
    finalized = {"metadata.version": 30, **(levels or {})}
    image = _replayed(EMPTY, [FeatureLevelRecord(name=name, feature_level=finalized[name]) for name in finalized])
    for broker_id in broker_ids:
        registration = NodeRegistration(
            node_id=broker_id,
            incarnation_id=bytes([broker_id]) * 16,
            endpoints=(Endpoint(listener="PLAINTEXT", host="h", port=9092),),
            directories=(bytes([100 + broker_id]) * 16,),
            rack=(racks or {}).get(broker_id),
        )
        registered = finished(controller.register_broker(image, registration))
        image = _replayed(image, registered.records)
        image = _replayed(image, finished(controller.unfence_broker(image, broker_id, registered.response)).records)
    return image


TOPIC_ID = b"topic-id--------"


def _with_topic(
    image: MetadataImage, *partitions: Mapping[str, Any], name: str = "t", topic_id: bytes = TOPIC_ID, **options: str
) -> MetadataImage:
    """A topic whose partitions are as given: ``replicas``, and what differs from all in sync and led by the first."""
    records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id)]
    for index, given in enumerate(partitions):
        replicas = given["replicas"]
        fields: dict[str, Any] = {
            "isr": list(replicas),
            "leader": replicas[0],
            "leader_epoch": 5,
            "partition_epoch": 7,
            "directories": [image.cluster.brokers[replica].default_directory for replica in replicas],
            **given,
        }
        records.append(PartitionRecord(partition_id=index, topic_id=topic_id, **fields))
    for option_name, value in options.items():
        option_name = option_name.replace("_", ".")
        records.append(ConfigRecord(resource_type=2, resource_name=name, name=option_name, value=value))
    return _replayed(image, records)


@pytest.fixture
def with_topic() -> Callable[..., MetadataImage]:
    return _with_topic


@pytest.fixture
def tracking() -> MetadataImage:
    """Three brokers that keep track of eligible leaders."""
    return _cluster(1, 2, 3, levels={"eligible.leader.replicas.version": 1})


@pytest.fixture
def controller() -> Controller:
    return _controller(partition_count_default=2)


@pytest.fixture
def make_rules() -> Callable[[], OptionRules]:
    return _rules


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
