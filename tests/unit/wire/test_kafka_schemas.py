"""Our declarations say what Kafka's own schema files say, also where bytes do not show it: defaults, ignorable, null.

kafka-python ships the files of Kafka 4.3 for the APIs of its clients: they are compared field by field. For the other
requests and responses `test_kio_agreement` compares what kio keeps; which fields are ignorable, and which lists are
null by default, is in the tables below. tests/interop compares all messages, and the records of the logs, with the
files in Kafka's own jars.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.classic_groups import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from millbeck.wire.schema import Array, message, schema_of, string
from tests.model.wire import kafka_schemas

_KAFKA_PYTHON = find_spec("kafka")
assert _KAFKA_PYTHON is not None
assert _KAFKA_PYTHON.origin is not None
RESOURCES = Path(_KAFKA_PYTHON.origin).parent / "protocol" / "schemas" / "resources"
DATA = (ConsumerProtocolSubscription, ConsumerProtocolAssignment)
DECLARED = [cls for api in APIS.values() for cls in (api.request, api.response)] + list(DATA)
WITH_FILE = [cls for cls in DECLARED if (RESOURCES / f"{cls.__name__}.json").is_file()]
WITHOUT_FILE = [cls for cls in DECLARED if cls not in WITH_FILE]

IGNORABLE = {
    "VoteRequest": {
        "voter_id",
        "topics.partitions.replica_directory_id",
        "topics.partitions.voter_directory_id",
    },
    "BeginQuorumEpochRequest": {"voter_id", "topics.partitions.voter_directory_id", "leader_endpoints"},
    "EndQuorumEpochRequest": {
        "topics.partitions.preferred_successors",
        "topics.partitions.preferred_candidates",
        "leader_endpoints",
    },
    "AlterPartitionRequest": {"topics.topic_id"},
    "AlterPartitionResponse": {"topics.topic_id", "topics.partitions.leader_recovery_state"},
    "FetchSnapshotRequest": {"topics.partitions.replica_directory_id"},
    "FetchSnapshotResponse": {"throttle_time_ms"},
    "BrokerRegistrationRequest": {"log_dirs", "previous_broker_epoch"},
    "ConsumerGroupDescribeResponse": {"groups.members.member_type"},
    "ShareFetchRequest": {"share_acquire_mode"},
    "ShareAcknowledgeResponse": {"acquisition_lock_timeout_ms"},
    "AddRaftVoterResponse": {"error_message"},
    "RemoveRaftVoterResponse": {"error_message"},
    "WriteShareGroupStateRequest": {"topics.partitions.delivery_complete_count"},
    "ReadShareGroupStateSummaryResponse": {"results.partitions.delivery_complete_count"},
    "DescribeShareGroupOffsetsResponse": {"groups.topics.partitions.lag"},
}
"""The fields that Kafka 4.3.1 leaves out of versions without them, of the messages that kafka-python has no file of."""

NULL_BY_DEFAULT = {
    "BrokerHeartbeatRequest": {"cordoned_log_dirs"},
    "ShareGroupHeartbeatRequest": {"subscribed_topic_names"},
    "ConsumerGroupHeartbeatRequest": {"subscribed_topic_names", "topic_partitions"},
    "StreamsGroupHeartbeatRequest": {
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "client_tags",
        "task_offsets",
        "task_end_offsets",
    },
    "StreamsGroupHeartbeatResponse": {
        "active_tasks",
        "standby_tasks",
        "warmup_tasks",
        "partitions_by_user_endpoint",
    },
    "StreamsGroupDescribeResponse": {"groups.topology.subtopologies"},
}
"""Of the same messages, the lists that Kafka 4.3.1 has null in a new message."""


@pytest.mark.parametrize("cls", WITH_FILE, ids=lambda cls: cls.__name__)
def test_declarations_say_what_kafkas_files_say(cls: type[Any]) -> None:
    theirs = kafka_schemas.parse((RESOURCES / f"{cls.__name__}.json").read_text())
    assert kafka_schemas.differences(cls, theirs) == []


@pytest.mark.parametrize("cls", WITHOUT_FILE, ids=lambda cls: cls.__name__)
def test_the_same_fields_are_ignorable_as_in_kafka(cls: type[Any]) -> None:
    found = {path for path, field in kafka_schemas.paths(cls) if field.ignorable}
    assert found == IGNORABLE.get(cls.__name__, set())


@pytest.mark.parametrize("cls", WITHOUT_FILE, ids=lambda cls: cls.__name__)
def test_the_same_lists_are_null_by_default_as_in_kafka(cls: type[Any]) -> None:
    fields = kafka_schemas.paths(cls)
    found = {path for path, field in fields if isinstance(field.type, Array) and field.make_default() is None}
    assert found == NULL_BY_DEFAULT.get(cls.__name__, set())


def test_every_message_has_a_file_or_is_compared_by_table() -> None:
    assert len(WITH_FILE) == 106
    assert {cls.__name__ for cls in WITHOUT_FILE} >= IGNORABLE.keys() | NULL_BY_DEFAULT.keys()


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "a new name": ({"name": "Lable"}, "fields"),
    "another type": ({"type": "bytes"}, "type"),
    "a list": ({"type": "[]string"}, "type"),
    "since another version": ({"versions": "2+"}, "versions"),
    "never null": ({"nullableVersions": "2+"}, "nullable versions"),
    "another tag": ({"tag": 1}, "tag"),
    "tagged later": ({"taggedVersions": "2+"}, "tagged versions"),
    "another default": ({"default": "x"}, "default"),
    "not ignorable": ({"ignorable": False}, "ignorable"),
    "never compact": ({"flexibleVersions": "none"}, "flexible versions"),
}


def test_every_kind_of_difference_is_found() -> None:
    @message(kind=schema_of(DATA[0]).kind, versions="0-2", flexible="1+")
    class Labelled:
        label: str | None = string(versions="1+", nullable="1+", tag=0, default=None, ignorable=True)

    field = {
        "name": "Label",
        "type": "string",
        "versions": "1+",
        "nullableVersions": "1+",
        "tag": 0,
        "taggedVersions": "1+",
        "default": "null",
        "ignorable": True,
    }
    file = {"type": "data", "validVersions": "0-2", "flexibleVersions": "1+", "fields": [field]}
    assert kafka_schemas.differences(Labelled, file) == []
    for changes, named in CHANGES.values():
        found = kafka_schemas.differences(Labelled, file | {"fields": [field | changes]})
        assert any(f" {named} " in each or f": {named} " in each for each in found), (changes, found)
    assert kafka_schemas.differences(Labelled, file | {"validVersions": "0-3"})
    assert kafka_schemas.differences(Labelled, file | {"flexibleVersions": "2+"})
    assert kafka_schemas.differences(Labelled, file | {"type": "request", "apiKey": 1})
