from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millbeck.controller import Controller, InternalTopic, auto_creation_request
from millbeck.controller.result import finished
from millbeck.metadata.image import MetadataImage

INTERNAL = {
    "__consumer_offsets": InternalTopic(
        partition_count=50, replication_factor=1, options={"cleanup.policy": "compact", "segment.bytes": "104857600"}
    )
}


def test_topics_are_made_with_defaults_and_internal_ones_as_they_must_be(
    controller: Controller, one_broker: MetadataImage, replayed: Callable[[MetadataImage, list[Any]], MetadataImage]
) -> None:
    request = auto_creation_request(["orders", "__consumer_offsets"], INTERNAL)
    result = finished(controller.create_topics(one_broker, request))
    assert [answer.error_code for answer in result.response.topics] == [0, 0]
    image = replayed(one_broker, result.records)
    assert len(image.topics.by_name["orders"].partitions) == 2
    assert len(image.topics.by_name["__consumer_offsets"].partitions) == 50
    assert image.configs.of_topic("orders") == {}
    assert image.configs.of_topic("__consumer_offsets") == INTERNAL["__consumer_offsets"].options
