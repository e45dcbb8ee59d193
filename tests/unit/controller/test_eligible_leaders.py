from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller, OptionRules
from millbeck.controller.eligible_leaders import records_for_tracking
from millbeck.controller.result import finished
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ClearElrRecord, ConfigRecord
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

WithTopic = Callable[..., MetadataImage]
Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
NAME = "min.insync.replicas"
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


def altered(
    controller: Controller, image: MetadataImage, kind: int, name: str, value: str | None, operation: int = SET
) -> tuple[int, list[Any]]:
    resource = IncrementalAlterConfigsResource(kind, name, [IncrementalAlterableConfig(NAME, operation, value)])
    result = finished(controller.incremental_alter_configs(image, IncrementalAlterConfigsRequest(resources=[resource])))
    return result.response.responses[0].error_code, result.records


@pytest.fixture
def image(tracking: MetadataImage, with_topic: WithTopic) -> MetadataImage:
    return with_topic(tracking, {"replicas": [1, 2, 3], "isr": [1], "eligible_leader_replicas": [2]}, **{NAME: "2"})


def test_who_was_eligible_by_another_number_is_forgotten(
    controller: Controller, image: MetadataImage, replayed: Replayed
) -> None:
    code, records = altered(controller, image, TOPIC, "t", "1")
    assert (code, records[1:]) == (0, [ClearElrRecord(topic_name="t")])
    assert replayed(image, records).topics.by_name["t"].partitions[0].eligible_leader_replicas == ()
    assert altered(controller, image, TOPIC, "t", "2") == (0, [])
    assert altered(controller, image, TOPIC, "t", None, DELETE)[1][1:] == [ClearElrRecord(topic_name="t")]
    assert altered(controller, image, BROKER, "", "3")[1][1:] == [ClearElrRecord(topic_name="")]


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_where_nobody_is_in_sync_they_stay_by_any_number(
    controller: Controller, tracking: MetadataImage, with_topic: WithTopic, replayed: Replayed, kind: int, name: str
) -> None:
    image = with_topic(
        tracking,
        {"replicas": [1, 2, 3], "isr": [1], "eligible_leader_replicas": [2]},
        {"replicas": [1, 2, 3], "isr": [], "leader": -1, "eligible_leader_replicas": [2], "last_known_elr": [1]},
    )
    code, records = altered(controller, image, kind, name, "3")
    assert (code, len(records)) == (0, 2)
    partitions = replayed(image, records).topics.by_name["t"].partitions
    assert [each.eligible_leader_replicas for each in partitions.values()] == [(), (2,)]
    assert partitions[1] is image.topics.by_name["t"].partitions[1]


def test_one_broker_has_no_number_of_its_own(controller: Controller, image: MetadataImage) -> None:
    assert altered(controller, image, BROKER, "1", "2") == (40, [])
    assert altered(controller, image, BROKER, "", None, DELETE) == (40, [])


def test_without_eligible_leaders_the_option_is_like_any_other(
    controller: Controller, three_brokers: MetadataImage, with_topic: WithTopic
) -> None:
    image = with_topic(three_brokers, {"replicas": [1]})
    for kind, name in ((TOPIC, "t"), (BROKER, ""), (BROKER, "1")):
        code, records = altered(controller, image, kind, name, "2")
        assert (code, [type(record) for record in records]) == (0, [ConfigRecord])
    assert altered(controller, image, BROKER, "", None, DELETE)[0] == 0


def test_what_tracking_needs_is_written_once(
    image: MetadataImage, make_rules: Callable[[], OptionRules], replayed: Replayed
) -> None:
    records = records_for_tracking(image, make_rules())
    assert records == [ConfigRecord(resource_type=BROKER, resource_name="", name=NAME, value="1")]
    assert records_for_tracking(replayed(image, records), make_rules()) == []
