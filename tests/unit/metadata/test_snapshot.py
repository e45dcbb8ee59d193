from __future__ import annotations

from typing import Any

import pytest

from millbeck.metadata.batches import control_batch, data_batch, read_batches
from millbeck.metadata.delta import advance
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import (
    RECORD_TYPES,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntityPart,
    RecordedEndpoint,
    RecordedFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
    ZkMigrationStateRecord,
)
from millbeck.metadata.snapshot import (
    BATCH_RECORD_COUNT,
    SnapshotId,
    bootstrap_checkpoint,
    bootstrap_records,
    formatted_records,
    parse_name,
    read_snapshot,
    snapshot_batches,
)
from millbeck.records.control import KRaftVersion, LeaderChange, SnapshotFooter, SnapshotHeader, Voter, Voters

# What kafka-storage format of Apache Kafka 4.3 writes when every feature but metadata.version is 0; each of its three
# batches has a clock reading of its own.
KAFKA_BOOTSTRAP = bytes.fromhex(
    "0000000000000000000000470000000002ec032755002000000000000001a1e3c02c79000001a1e3c02c79ffffffffffffff"
    "ffffffffffffff000000012a00000008000000031600000000000000000000000000000000000000010000004f0000000002"
    "d4e8dcc5000000000000000001a1e3c02c8a000001a1e3c02c8affffffffffffffffffffffffffff000000013a000000012e"
    "010c00116d657461646174612e76657273696f6e001e000000000000000000020000003f000000000204c2c1c60020000000"
    "00000001a1e3c02c8b000001a1e3c02c8bffffffffffffffffffffffffffff000000011a00000008000000040600000000"
)


def _file(records: list[MetadataRecord]) -> bytes:
    return b"".join(snapshot_batches(records, epoch=3, last_contained_log_timestamp=55, now_ms=66))


def _options(count: int) -> list[MetadataRecord]:
    return [ConfigRecord(resource_type=2, resource_name="t", name=f"n{index}", value="v") for index in range(count)]


def test_the_bootstrap_checkpoint_is_kafkas() -> None:
    assert list(read_snapshot(KAFKA_BOOTSTRAP).records) == bootstrap_records()
    ours = bootstrap_checkpoint(bootstrap_records(), now_ms=0x1A1E3C02C79)
    theirs = list(read_batches(KAFKA_BOOTSTRAP))
    written = list(read_batches(ours))
    assert len(ours) == len(KAFKA_BOOTSTRAP)
    assert ours[: theirs[0].size_bytes] == KAFKA_BOOTSTRAP[: theirs[0].size_bytes]
    assert [(batch.base_offset, batch.epoch, batch.size_bytes) for batch in written] == [
        (batch.base_offset, batch.epoch, batch.size_bytes) for batch in theirs
    ]


def test_a_new_directory_begins_with_what_kafka_begins_with() -> None:
    levels = {
        metadata_version: [
            (record.name, record.feature_level)
            for record in formatted_records(metadata_version)
            if isinstance(record, FeatureLevelRecord)
        ]
        for metadata_version in (21, 22, 24, 26)
    }
    assert levels[21] == [("metadata.version", 21)]
    assert levels[22] == [("metadata.version", 22), ("group.version", 1)]
    assert ("transaction.version", 2) in levels[24]
    assert ("eligible.leader.replicas.version", 1) in levels[26]


def test_a_new_cluster_begins_with_the_metadata_version_alone() -> None:
    assert bootstrap_records() == [FeatureLevelRecord(name="metadata.version", feature_level=30)]


@pytest.mark.parametrize("count", [0, 1, BATCH_RECORD_COUNT, BATCH_RECORD_COUNT + 1])
def test_a_snapshot_is_header_data_and_footer(count: int) -> None:
    data = _file(_options(count))
    snapshot = read_snapshot(data)
    assert snapshot.last_contained_log_timestamp == 55
    assert list(snapshot.records) == _options(count)
    batches = list(read_batches(data))
    assert batches[0].control_values == (SnapshotHeader(last_contained_log_timestamp=55),)
    assert batches[-1].control_values == (SnapshotFooter(),)
    assert len(batches) == 2 + -(-count // BATCH_RECORD_COUNT)
    assert [batch.base_offset for batch in batches] == [0, *(batch.last_offset + 1 for batch in batches[:-1])]
    assert {batch.epoch for batch in batches} == {3}


def test_the_voters_of_a_dynamic_quorum_are_read() -> None:
    header = SnapshotHeader(last_contained_log_timestamp=1)
    values: list[Any] = [header, KRaftVersion(kraft_version=1), Voters(voters=())]
    data = control_batch(values, base_offset=0, epoch=0, timestamp_ms=1)
    data += control_batch([SnapshotFooter()], base_offset=3, epoch=0, timestamp_ms=1)
    snapshot = read_snapshot(data)
    assert (snapshot.kraft_version, snapshot.voters) == (1, Voters(voters=()))


def test_voters_are_written_beside_the_header() -> None:
    voters = Voters(voters=(Voter(node_id=1, directory_id=b"d" * 16, endpoints=()),))
    batches = list(
        snapshot_batches(_options(1), epoch=3, last_contained_log_timestamp=5, now_ms=6, kraft_version=1, voters=voters)
    )
    assert [batch.base_offset for batch in read_batches(b"".join(batches))] == [0, 3, 4]
    snapshot = read_snapshot(b"".join(batches))
    assert (snapshot.kraft_version, snapshot.voters) == (1, voters)


def test_names_carry_the_place_in_the_log() -> None:
    snapshot_id = SnapshotId(80, 1)
    assert snapshot_id.file_name == "00000000000000000080-0000000001.checkpoint"
    assert snapshot_id.part_name == "00000000000000000080-0000000001.checkpoint.part"
    assert parse_name(snapshot_id.file_name) == snapshot_id
    for other in (snapshot_id.part_name, "bootstrap.checkpoint", "80-1.checkpoint", "00000000000000000080.log"):
        assert parse_name(other) is None


HEADER = control_batch([SnapshotHeader(last_contained_log_timestamp=1)], base_offset=0, epoch=1, timestamp_ms=1)
FOOTER = control_batch([SnapshotFooter()], base_offset=1, epoch=1, timestamp_ms=1)
DATA = data_batch(_options(1), base_offset=1, epoch=1, timestamp_ms=1)
STRANGE = control_batch(
    [LeaderChange(leader_id=1, voters=(), granting_voters=())], base_offset=1, epoch=1, timestamp_ms=1
)
FAULTS = {
    "empty": b"",
    "no footer": HEADER + DATA,
    "no header": DATA + FOOTER,
    "footer alone": FOOTER,
    "goes on": HEADER + FOOTER + DATA,
    "cut in a batch": (HEADER + DATA + FOOTER)[:-1],
    "strange control record": HEADER + STRANGE + FOOTER,
}


@pytest.mark.parametrize("data", FAULTS.values(), ids=FAULTS.keys())
def test_what_is_not_a_whole_snapshot_is_a_fault(data: bytes) -> None:
    with pytest.raises(MetadataFault):
        read_snapshot(data)


def _topic(name: str, number: int) -> list[MetadataRecord]:
    topic_id = bytes([number]) * 16
    partition = PartitionRecord(
        partition_id=0,
        topic_id=topic_id,
        replicas=[1, 2, 3],
        isr=[1],
        removing_replicas=[3],
        adding_replicas=[2],
        leader=1,
        leader_recovery_state=1,
        leader_epoch=4,
        partition_epoch=5,
        directories=[b"1" * 16, b"2" * 16, b"3" * 16],
        eligible_leader_replicas=[2],
        last_known_elr=[3],
    )
    return [TopicRecord(name=name, topic_id=topic_id), partition]


def _broker(broker_id: int) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        incarnation_id=bytes([broker_id]) * 16,
        broker_epoch=broker_id,
        end_points=[RecordedEndpoint(name="A", host="h", port=1, security_protocol=1)],
        features=[RecordedFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        rack="r",
        log_dirs=[bytes([100 + broker_id]) * 16],
        cordoned_log_dirs=[],
    )


_ACL = AccessControlEntryRecord(id=b"a" * 16, resource_type=2, resource_name="t", pattern_type=3, principal="User:a")
_TOKEN = DelegationTokenRecord(owner="User:o", requester="User:r", renewers=["User:n"], token_id="t", issue_timestamp=1)
_SCRAM = UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096)
_QUOTA = ClientQuotaRecord(entity=[QuotaEntityPart(entity_type="user", entity_name=None)], key="k", value=2.5)
ONE_OF_EACH: list[list[MetadataRecord]] = [
    [_broker(1)],
    [_broker(2), UnregisterBrokerRecord(broker_id=2, broker_epoch=2)],
    [_broker(3), UnfenceBrokerRecord(id=3, epoch=3)],
    [_broker(4), UnfenceBrokerRecord(id=4, epoch=4), FenceBrokerRecord(id=4, epoch=4)],
    [
        _broker(5),
        BrokerRegistrationChangeRecord(
            broker_id=5,
            broker_epoch=5,
            fenced=-1,
            in_controlled_shutdown=1,
            log_dirs=[b"n" * 16],
            cordoned_log_dirs=[b"n" * 16],
        ),
    ],
    [
        RegisterControllerRecord(
            controller_id=7,
            incarnation_id=b"7" * 16,
            end_points=[RecordedEndpoint(name="C", host="c", port=2)],
            features=[RecordedFeature(name="kraft.version", min_supported_version=0, max_supported_version=1)],
        )
    ],
    _topic("whole", 1),
    [
        *_topic("changed", 2),
        PartitionChangeRecord(
            partition_id=0,
            topic_id=bytes([2]) * 16,
            isr=[2],
            leader=2,
            replicas=[2, 1],
            removing_replicas=[1],
            adding_replicas=[],
            leader_recovery_state=0,
            directories=[b"x" * 16, b"y" * 16],
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
    ],
    [*_topic("cleared", 3), ClearElrRecord(topic_name="cleared")],
    [*_topic("gone", 4), RemoveTopicRecord(topic_id=bytes([4]) * 16)],
    [ConfigRecord(resource_type=4, resource_name="", name="n", value="v")],
    [FeatureLevelRecord(name="metadata.version", feature_level=30)],
    [FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)],
    [_QUOTA],
    [ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1000)],
    [_ACL],
    [_SCRAM],
    [_TOKEN],
]
FORGETTING: dict[type, list[MetadataRecord]] = {
    RemoveAccessControlEntryRecord: [_ACL, RemoveAccessControlEntryRecord(id=b"a" * 16)],
    RemoveUserScramCredentialRecord: [_SCRAM, RemoveUserScramCredentialRecord(name="u", mechanism=1)],
    RemoveDelegationTokenRecord: [_TOKEN, RemoveDelegationTokenRecord(token_id="t")],
}
SAYS_NOTHING: set[type] = {
    NoOpRecord,
    ZkMigrationStateRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    AbortTransactionRecord,
}


def _through_a_snapshot(image: MetadataImage) -> MetadataImage:
    read = read_snapshot(_file(list(image.records())))
    return advance(EMPTY, read.records, offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms)[0]


def test_a_snapshot_misses_none_of_the_records() -> None:
    covered = {type(record) for records in (*ONE_OF_EACH, *FORGETTING.values()) for record in records}
    assert covered | SAYS_NOTHING == set(RECORD_TYPES.values())
    image = EMPTY
    for records in ONE_OF_EACH:
        before = image
        image, _ = advance(image, records, offset=image.offset + len(records), epoch=1, timestamp_ms=2)
        assert _through_a_snapshot(image) == image
        # Each of them says something that an image without it does not have, but for what comes and goes.
        if not isinstance(records[-1], UnregisterBrokerRecord | RemoveTopicRecord):
            assert list(image.records()) != list(before.records())
    for records in FORGETTING.values():
        forgotten, _ = advance(EMPTY, records, offset=9, epoch=1, timestamp_ms=2)
        assert list(forgotten.records()) == []
