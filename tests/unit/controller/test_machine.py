"""The law of decisions: replaying a result's records makes true what its response says, and nothing else changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millbeck.controller import Controller
from millbeck.controller.result import finished
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]

NAMES = st.sampled_from(("a", "b.c", "b_c", "d", "bad name", ""))
OPTIONS = st.sampled_from(
    (("retention.ms", "1"), ("retention.ms", "x"), ("segment.bytes", "2097152"), ("nope", "1"), ("flush.ms", None))
)
CREATIONS = st.builds(
    CreatableTopic,
    name=NAMES,
    num_partitions=st.integers(-2, 4),
    replication_factor=st.integers(-2, 4),
    configs=st.lists(st.builds(lambda pair: CreatableTopicConfig(*pair), OPTIONS), max_size=2),
)
REQUESTS = st.one_of(
    st.builds(CreateTopicsRequest, topics=st.lists(CREATIONS, max_size=4), validate_only=st.booleans()),
    st.builds(
        DeleteTopicsRequest,
        topics=st.lists(st.builds(DeleteTopicState, name=st.none() | NAMES), min_size=1, max_size=3),
    ),
    st.builds(
        CreatePartitionsRequest,
        topics=st.lists(
            st.builds(CreatePartitionsTopic, name=NAMES, count=st.integers(-1, 6), assignments=st.none()), max_size=3
        ),
        validate_only=st.booleans(),
    ),
    st.builds(
        IncrementalAlterConfigsRequest,
        resources=st.lists(
            st.builds(
                IncrementalAlterConfigsResource,
                resource_type=st.just(2),
                resource_name=NAMES,
                configs=st.lists(
                    st.builds(
                        lambda pair, kind: IncrementalAlterableConfig(pair[0], kind, pair[1]),
                        OPTIONS,
                        st.integers(0, 4),
                    ),
                    max_size=2,
                ),
            ),
            max_size=3,
        ),
        validate_only=st.booleans(),
    ),
)


def _decide(controller: Controller, image: MetadataImage, request: Any) -> Any:
    match request:
        case CreateTopicsRequest():
            return finished(controller.create_topics(image, request))
        case DeleteTopicsRequest():
            return finished(controller.delete_topics(image, request))
        case CreatePartitionsRequest():
            return finished(controller.create_partitions(image, request))
        case _:
            return finished(controller.incremental_alter_configs(image, request))


def _check(before: MetadataImage, after: MetadataImage, request: Any, response: Any) -> None:
    """Each outcome is what the images show."""
    touched: set[str] = set()
    match request:
        case CreateTopicsRequest():
            for answer in response.topics:
                if answer.error_code == 0:
                    touched.add(answer.name)
                    topic = after.topics.by_name[answer.name]
                    assert answer.name not in before.topics.by_name
                    assert (topic.topic_id, len(topic.partitions)) == (answer.topic_id, answer.num_partitions)
                    factors = {len(partition.replicas) for partition in topic.partitions.values()}
                    assert factors == {answer.replication_factor}
        case DeleteTopicsRequest():
            for answer in response.responses:
                if answer.error_code == 0:
                    touched.add(answer.name)
                    assert answer.name in before.topics.by_name
                    assert answer.name not in after.topics.by_name
                    assert after.configs.of_topic(answer.name) == {}
        case CreatePartitionsRequest():
            wanted = {topic.name: topic.count for topic in request.topics}
            for answer in response.results:
                if answer.error_code == 0:
                    touched.add(answer.name)
                    count = wanted[answer.name]
                    assert len(before.topics.by_name[answer.name].partitions) < count
                    assert sorted(after.topics.by_name[answer.name].partitions) == list(range(count))
        case _:
            touched = {answer.resource_name for answer in response.responses if answer.error_code == 0}
            assert after.topics is before.topics
    for name in {*before.topics.by_name, *after.topics.by_name} - touched:
        assert before.topics.by_name.get(name) is after.topics.by_name.get(name)
        assert before.configs.of_topic(name) == after.configs.of_topic(name)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(REQUESTS, max_size=6))
def test_replaying_the_records_makes_the_response_true(
    controller: Controller, three_brokers: MetadataImage, replayed: Replayed, requests: list[Any]
) -> None:
    image = three_brokers
    for request in requests:
        result = _decide(controller, image, request)
        if getattr(request, "validate_only", False):
            assert result.records == []
            continue
        after = replayed(image, result.records)
        _check(image, after, request, result.response)
        image = after


def test_the_same_image_request_and_seed_give_the_same_decision(
    make_controller: Callable[..., Controller], three_brokers: MetadataImage
) -> None:
    request = CreateTopicsRequest(topics=[CreatableTopic("a", 6, 2), CreatableTopic("b", 3, 3)])
    first, second = (finished(make_controller(seed=3).create_topics(three_brokers, request)) for _ in range(2))
    assert first.records == second.records
    other = finished(make_controller(seed=4).create_topics(three_brokers, request))
    assert other.records != first.records
