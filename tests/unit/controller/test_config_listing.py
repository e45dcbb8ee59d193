from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import ConfigRecord, TopicRecord
from millbeck.wire.messages.configs import ListConfigResourcesRequest


@pytest.fixture
def image(one_broker: MetadataImage, replayed: Callable[[MetadataImage, list[Any]], MetadataImage]) -> MetadataImage:
    options = [
        ConfigRecord(resource_type=kind, resource_name=name, name="x", value="1")
        for kind, name in ((32, "g"), (16, "m"), (2, "b"), (4, ""))
    ]
    topics = [TopicRecord(name=name, topic_id=name.encode() * 16) for name in ("b", "a")]
    return replayed(one_broker, [*topics, *options])


def _listed(controller: Controller, image: MetadataImage, types: list[int], version: int = 1) -> list[tuple[int, str]]:
    request = ListConfigResourcesRequest(resource_types=types)
    response = controller.list_config_resources(image, request, version=version)
    assert response.error_code == 0
    return [(found.resource_type, found.resource_name) for found in response.config_resources]


def test_everything_is_listed_unless_types_are_named(controller: Controller, image: MetadataImage) -> None:
    everything = [(2, "a"), (2, "b"), (4, "1"), (8, "1"), (16, "m"), (32, "g")]
    assert _listed(controller, image, []) == everything
    assert _listed(controller, image, [32, 2]) == [(2, "a"), (2, "b"), (32, "g")]


def test_version_0_means_client_metrics(controller: Controller, image: MetadataImage) -> None:
    assert _listed(controller, image, [], version=0) == [(16, "m")]


def test_other_types_are_refused(controller: Controller, image: MetadataImage) -> None:
    response = controller.list_config_resources(image, ListConfigResourcesRequest(resource_types=[2, 3]), version=1)
    assert (response.error_code, response.config_resources) == (35, [])
