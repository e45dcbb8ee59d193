from __future__ import annotations

from millbeck.cli.records.record_payloads import (
    as_text,
    control_record,
    fields_of,
    group_record,
    metadata_record,
    plain,
)
from millbeck.coordinator.group import records as group_records
from millbeck.coordinator.group.streams.records import StreamsGroupMetadataValue
from millbeck.kernel.ids import ZERO_UUID
from millbeck.metadata import framing
from millbeck.metadata.records import TopicRecord
from millbeck.records import control
from millbeck.records.control import EndTransaction, LeaderChange, VoterId
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.streams_groups import KeyValue

TOPIC_ID = bytes(range(16))


def test_text_stays_text_and_other_bytes_are_escaped() -> None:
    assert plain("schön".encode(), b"\xff\x00a") == ("schön", "\\xff\x00a")
    assert as_text(None) is None


def test_an_offset_commit() -> None:
    record = group_records.offset_commit(
        group_id="g", topic="t", partition=1, offset=42, leader_epoch=3, metadata="note", commit_timestamp=7
    )
    key, value = group_record(*group_records.encode(record))
    assert key == {"type": "1", "data": {"group": "g", "topic": "t", "partition": 1}}
    assert isinstance(value, dict)
    assert value["version"] == "4"
    assert value["data"]["offset"] == 42
    assert value["data"]["metadata"] == "note"


def test_a_tombstone_has_no_value() -> None:
    key, value = group_record(*group_records.encode(group_records.group_tombstone("g")))
    assert key == {"type": "2", "data": {"group": "g"}}
    assert value is None


def test_group_records_that_are_none_are_said_to_be() -> None:
    assert group_record(b"\0\x63", b"x") == ("<unknown type>", None)
    assert str(group_record(b"\0\1\0", b"x")[0]).startswith("<unreadable")
    assert group_record(None, b"x") == ("<unknown type>", None)


def test_a_metadata_record() -> None:
    record = TopicRecord(name="orders", topic_id=TOPIC_ID)
    assert metadata_record(None, framing.encode(record)) == (
        None,
        {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "orders", "topicId": "AAECAwQFBgcICQoLDA0ODw"}},
    )
    assert str(metadata_record(None, b"\x63")[1]).startswith("<unreadable")
    assert metadata_record(None, None) == (None, None)


def test_markers_and_the_quorums_records() -> None:
    assert control_record(*control.encode(EndTransaction(committed=True, coordinator_epoch=5))) == {
        "endTxnMarker": "COMMIT",
        "coordinatorEpoch": 5,
    }
    change = LeaderChange(leader_id=1, voters=(VoterId(node_id=1),), granting_voters=())
    shown = control_record(*control.encode(change))
    assert shown["LeaderChange"] == {
        "leaderId": 1,
        "voters": [{"nodeId": 1, "directoryId": "AAAAAAAAAAAAAAAAAAAAAA"}],
        "grantingVoters": [],
        "version": 0,
    }
    assert control_record(control.control_key(control.ControlType.COMMIT)[:2] + b"\0\x63", b"") == {
        "controlRecord": "<unknown type>"
    }
    assert "unreadable" in str(control_record(None, None))


def test_fields_have_kafkas_names_all_the_way_down() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=ZERO_UUID, name="t")])
    shown = fields_of(request)
    assert shown["topics"] == [{"topicId": "AAAAAAAAAAAAAAAAAAAAAA", "name": "t"}]
    assert "allowAutoTopicCreation" in shown


def test_tagged_fields_at_their_default_are_left_out() -> None:
    assert fields_of(StreamsGroupMetadataValue(3, 7)) == {"epoch": 3, "metadataHash": 7}
    told = fields_of(StreamsGroupMetadataValue(3, 7, 0, [KeyValue("a", "b")]))
    assert told["validatedTopologyEpoch"] == 0
    assert told["lastAssignmentConfigs"] == [{"key": "a", "value": "b"}]
