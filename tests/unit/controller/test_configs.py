from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import Controller
from millbeck.controller.configs import AlterConfigOp
from millbeck.controller.result import finished
from millbeck.metadata.image import ConfigResource, MetadataImage
from millbeck.metadata.records import ConfigRecord
from millbeck.wire.messages import configs as configs_messages
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest

Replayed = Callable[[MetadataImage, list[Any]], MetadataImage]
SET, DELETE, APPEND, SUBTRACT = AlterConfigOp.SET, AlterConfigOp.DELETE, AlterConfigOp.APPEND, AlterConfigOp.SUBTRACT
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def image(controller: Controller, one_broker: MetadataImage, replayed: Replayed) -> MetadataImage:
    request = CreateTopicsRequest(topics=[CreatableTopic("orders", 1, 1), CreatableTopic("__consumer_offsets", 1, 1)])
    return replayed(one_broker, finished(controller.create_topics(one_broker, request)).records)


def _incremental(
    resource_type: int, name: str, *changes: tuple[str, AlterConfigOp, str | None]
) -> configs_messages.IncrementalAlterConfigsResource:
    configs = [configs_messages.IncrementalAlterableConfig(key, operation, value) for key, operation, value in changes]
    return configs_messages.IncrementalAlterConfigsResource(resource_type, name, configs)


class Changed:
    """The outcome of one IncrementalAlterConfigs on one resource."""

    def __init__(self, controller: Controller, image: MetadataImage, replayed: Replayed, *arguments: Any) -> None:
        request = configs_messages.IncrementalAlterConfigsRequest(resources=[_incremental(*arguments)])
        result = finished(controller.incremental_alter_configs(image, request))
        [answer] = result.response.responses
        self.records = result.records
        self.code, self.message = answer.error_code, answer.error_message or ""
        self.image = replayed(image, result.records)
        self.options = self.image.configs.of(ConfigResource(arguments[0], arguments[1]))


@pytest.fixture
def change(controller: Controller, replayed: Replayed) -> Callable[..., Changed]:
    return lambda image, *arguments: Changed(controller, image, replayed, *arguments)


def test_options_are_set_and_deleted(image: MetadataImage, change: Callable[..., Changed]) -> None:
    first = change(image, TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "60000"))
    assert (first.code, first.options) == (0, {"retention.ms": "5", "segment.ms": "60000"})
    second = change(first.image, TOPIC, "orders", ("retention.ms", DELETE, None))
    assert (second.code, second.options) == (0, {"segment.ms": "60000"})


def test_a_value_that_stays_is_no_record_on_a_topic_but_one_on_a_broker(
    image: MetadataImage, change: Callable[..., Changed]
) -> None:
    topic = change(image, TOPIC, "orders", ("retention.ms", SET, "5"))
    assert change(topic.image, TOPIC, "orders", ("retention.ms", SET, "5")).records == []
    assert change(image, TOPIC, "orders", ("retention.ms", DELETE, None)).records == []
    broker = change(image, BROKER, "1", ("log.retention.ms", SET, "5"))
    assert len(change(broker.image, BROKER, "1", ("log.retention.ms", SET, "5")).records) == 1


def test_lists_are_appended_to_and_taken_from(image: MetadataImage, change: Callable[..., Changed]) -> None:
    offsets = "__consumer_offsets"
    both = change(image, TOPIC, offsets, ("cleanup.policy", APPEND, "compact"))
    assert both.options == {"cleanup.policy": "delete,compact"}
    again = change(both.image, TOPIC, offsets, ("cleanup.policy", APPEND, "compact,delete"))
    assert again.options == {"cleanup.policy": "delete,compact"}
    one = change(both.image, TOPIC, offsets, ("cleanup.policy", SUBTRACT, "delete,other"))
    assert one.options == {"cleanup.policy": "compact"}


def test_appending_begins_with_the_value_in_force(image: MetadataImage, change: Callable[..., Changed]) -> None:
    broker = change(image, BROKER, "", ("log.cleanup.policy", SET, "compact"))
    topic = change(broker.image, TOPIC, "__consumer_offsets", ("cleanup.policy", APPEND, "delete"))
    assert topic.options == {"cleanup.policy": "compact,delete"}


def test_groups_and_the_default_of_brokers_have_options(image: MetadataImage, change: Callable[..., Changed]) -> None:
    group = change(image, GROUP, "g", ("consumer.session.timeout.ms", SET, "45001"))
    assert group.image.configs.of_group("g") == {"consumer.session.timeout.ms": "45001"}
    brokers = change(image, BROKER, "", ("log.retention.ms", SET, "1"))
    assert brokers.image.configs.of_all_brokers() == {"log.retention.ms": "1"}
    # An option nobody declared may belong to a plugin of the broker.
    assert change(image, BROKER, "1", ("my.plugin.option", SET, "x")).code == 0


REFUSED = {
    "append to a number": (TOPIC, "orders", ("retention.ms", APPEND, "1"), 40, "Can't APPEND to key retention.ms"),
    "subtract from a number": (TOPIC, "orders", ("retention.ms", SUBTRACT, "1"), 40, "Can't SUBTRACT"),
    "unknown option": (TOPIC, "orders", ("nope", SET, "1"), 40, "Unknown topic config name: nope"),
    "bad value": (TOPIC, "orders", ("retention.ms", SET, "-5"), 40, "retention.ms"),
    "unknown topic": (TOPIC, "x", ("retention.ms", SET, "1"), 3, "The topic 'x' does not exist."),
    "null": (TOPIC, "orders", ("retention.ms", SET, None), 42, "Null value not supported for : retention.ms"),
    "null to append": (TOPIC, "orders", ("cleanup.policy", APPEND, None), 42, "Null value"),
    "unknown operation": (TOPIC, "orders", ("retention.ms", 9, "1"), 42, "Unknown operation type 9"),
    "compaction": (TOPIC, "orders", ("cleanup.policy", APPEND, "compact"), 40, "compact"),
    "tiering": (TOPIC, "orders", ("remote.storage.enable", SET, "true"), 40, "remote.storage.enable"),
    "fixed broker option": (
        BROKER,
        "1",
        ("log.dirs", SET, "/x"),
        42,
        "Cannot update these configs dynamically: [log.dirs]",
    ),
    "fixed broker option deleted": (BROKER, "1", ("log.dirs", DELETE, None), 42, "log.dirs"),
    "one broker's option for all": (BROKER, "", ("advertised.listeners", SET, "x"), 42, "broker id must be specified"),
    "bad broker value": (BROKER, "1", ("log.retention.ms", SET, "soon"), 40, "log.retention.ms"),
    "unknown broker": (BROKER, "7", ("log.retention.ms", SET, "1"), 102, "7"),
    "broker by name": (BROKER, "x", ("log.retention.ms", SET, "1"), 42, "base 10"),
    "negative broker": (BROKER, "-1", ("log.retention.ms", SET, "1"), 42, "negative"),
    "group without name": (GROUP, "", ("consumer.session.timeout.ms", SET, "1"), 42, "not allowed"),
    "unknown group option": (GROUP, "g", ("nope", SET, "1"), 40, "Unknown group config name: nope"),
    "bad group value": (GROUP, "g", ("consumer.session.timeout.ms", SET, "0"), 40, "consumer.session.timeout.ms"),
    "logger": (BROKER_LOGGER, "1", ("x", SET, "DEBUG"), 42, "resource type 8"),
    "client metrics": (CLIENT_METRICS, "x", ("interval.ms", SET, "1"), 42, "resource type 16"),
}


@pytest.mark.parametrize(("kind", "name", "wanted", "code", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_says_why(
    image: MetadataImage,
    change: Callable[..., Changed],
    kind: int,
    name: str,
    wanted: tuple[str, AlterConfigOp, str | None],
    code: int,
    words: str,
) -> None:
    outcome = change(image, kind, name, wanted)
    assert (outcome.code, outcome.records) == (code, [])
    assert words in outcome.message


def test_an_option_twice_is_refused(image: MetadataImage, change: Callable[..., Changed]) -> None:
    outcome = change(image, TOPIC, "orders", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    assert (outcome.code, outcome.records) == (42, [])
    assert outcome.message == "Error due to duplicate config keys : retention.ms"


def test_resources_succeed_or_fail_apart(controller: Controller, image: MetadataImage) -> None:
    resources = [
        _incremental(TOPIC, "orders", ("retention.ms", SET, "1")),
        _incremental(TOPIC, "x", ("retention.ms", SET, "1")),
        _incremental(BROKER, "1", ("log.retention.ms", SET, "1")),
        _incremental(BROKER, "1", ("log.retention.ms", SET, "2")),
    ]
    request = configs_messages.IncrementalAlterConfigsRequest(resources=resources)
    result = finished(controller.incremental_alter_configs(image, request))
    answers = [(answer.resource_name, answer.error_code) for answer in result.response.responses]
    assert answers == [("orders", 0), ("x", 3), ("1", 42)]
    assert [record.resource_name for record in result.records if isinstance(record, ConfigRecord)] == ["orders"]
    request.validate_only = True
    assert finished(controller.incremental_alter_configs(image, request)).records == []


def test_a_request_that_changes_too_much_is_refused(controller: Controller, image: MetadataImage) -> None:
    changes = [(f"plugin.{index}", SET, "x") for index in range(10_001)]
    request = configs_messages.IncrementalAlterConfigsRequest(resources=[_incremental(BROKER, "1", *changes)])
    result = finished(controller.incremental_alter_configs(image, request))
    assert (result.records, result.response.responses[0].error_code) == ([], 44)


def _alter(*resources: tuple[int, str, dict[str, str | None]]) -> configs_messages.AlterConfigsRequest:
    return configs_messages.AlterConfigsRequest(
        resources=[
            configs_messages.AlterConfigsResource(
                kind, name, [configs_messages.AlterableConfig(key, value) for key, value in options.items()]
            )
            for kind, name, options in resources
        ]
    )


def test_alter_configs_replaces_everything(
    controller: Controller, image: MetadataImage, change: Callable[..., Changed], replayed: Replayed
) -> None:
    before = change(image, TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "60000")).image
    result = finished(
        controller.alter_configs(before, _alter((TOPIC, "orders", {"segment.ms": "60000", "flush.ms": "1"})))
    )
    assert [answer.error_code for answer in result.response.responses] == [0]
    assert replayed(before, result.records).configs.of_topic("orders") == {"segment.ms": "60000", "flush.ms": "1"}
    emptied = finished(controller.alter_configs(before, _alter((TOPIC, "orders", {}))))
    assert replayed(before, emptied.records).configs.of_topic("orders") == {}


def test_alter_configs_refuses_as_the_other_does(controller: Controller, image: MetadataImage) -> None:
    request = _alter(
        (TOPIC, "x", {"retention.ms": "1"}), (TOPIC, "orders", {"retention.ms": None}), (BROKER, "1", {"log.dirs": "/"})
    )
    result = finished(controller.alter_configs(image, request))
    assert result.records == []
    assert [answer.error_code for answer in result.response.responses] == [3, 42, 42]
    valid = _alter((TOPIC, "orders", {"retention.ms": "1"}))
    valid.validate_only = True
    checked = finished(controller.alter_configs(image, valid))
    assert (checked.records, checked.response.responses[0].error_code) == ([], 0)
