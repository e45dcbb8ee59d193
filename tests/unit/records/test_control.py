"""Control records, against kio's classes for the ones it has and against bytes by hand for the rest."""

from __future__ import annotations

import io
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords
from kio.schema.leader_change_message import v0 as leader_change_v0
from kio.schema.leader_change_message import v1 as leader_change_v1
from kio.schema.snapshot_footer_record import v0 as snapshot_footer_v0
from kio.schema.snapshot_header_record import v0 as snapshot_header_v0
from kio.schema.voters_record import v0 as voters_v0
from kio.serial import entity_writer

from millbeck.kernel.errors import CorruptMessage
from millbeck.records import batch, control
from millbeck.records.control import (
    ControlType,
    ControlValue,
    EndTransaction,
    KRaftVersion,
    LeaderChange,
    SnapshotFooter,
    SnapshotHeader,
    Voter,
    VoterEndpoint,
    VoterId,
    Voters,
)
from millbeck.records.record import Record

INT32 = st.integers(-(2**31), 2**31 - 1)
UUIDS = st.binary(min_size=16, max_size=16).filter(any)
VOTER_IDS = st.lists(st.builds(VoterId, node_id=INT32, directory_id=UUIDS), max_size=130).map(tuple)
ENDPOINTS = st.builds(VoterEndpoint, name=st.text(max_size=5), host=st.text(max_size=9), port=st.integers(0, 65535))
VOTERS = st.builds(
    Voter,
    node_id=INT32,
    directory_id=UUIDS,
    endpoints=st.lists(ENDPOINTS, max_size=3, unique_by=lambda endpoint: endpoint.name).map(tuple),
    kraft_version_min=st.integers(0, 9),
    kraft_version_max=st.integers(0, 9),
)


def by_kio(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def decoded(value: ControlValue) -> ControlValue | None:
    key, body = control.encode(value)
    return control.decode(Record(0, 0, key, body))


@given(INT32, VOTER_IDS, VOTER_IDS)
@settings(max_examples=30)
def test_leader_change_is_written_as_kio_writes_it(
    leader_id: int, voters: tuple[VoterId, ...], granting: tuple[VoterId, ...]
) -> None:
    for version, module in ((0, leader_change_v0), (1, leader_change_v1)):
        value = LeaderChange(leader_id=leader_id, voters=voters, granting_voters=granting, version=version)

        def theirs(voter: VoterId, module: Any = module, version: int = version) -> Any:
            directory = {"voter_directory_id": uuid.UUID(bytes=voter.directory_id)} if version else {}
            return module.data.Voter(voter_id=voter.node_id, **directory)

        assert control.encode(value)[1] == by_kio(
            module.LeaderChangeMessage(
                version=version,
                leader_id=leader_id,
                voters=tuple(map(theirs, voters)),
                granting_voters=tuple(map(theirs, granting)),
            )
        )
        if version == 1:
            assert decoded(value) == value
        else:
            found = decoded(value)
            assert isinstance(found, LeaderChange)
            assert [voter.node_id for voter in found.voters] == [voter.node_id for voter in voters]


@given(st.lists(VOTERS, max_size=4).map(tuple))
@settings(max_examples=30)
def test_voters_are_written_as_kio_writes_them(voters: tuple[Voter, ...]) -> None:
    kio: Any = voters_v0.data
    theirs = kio.VotersRecord(
        version=0,
        voters=tuple(
            kio.Voter(
                voter_id=voter.node_id,
                voter_directory_id=uuid.UUID(bytes=voter.directory_id),
                endpoints=tuple(
                    kio.Endpoint(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                    for endpoint in voter.endpoints
                ),
                k_raft_version_feature=kio.KRaftVersionFeature(
                    min_supported_version=voter.kraft_version_min, max_supported_version=voter.kraft_version_max
                ),
            )
            for voter in voters
        ),
    )
    assert control.encode(Voters(voters=voters))[1] == by_kio(theirs)
    assert decoded(Voters(voters=voters)) == Voters(voters=voters)


def test_snapshot_records_are_written_as_kio_writes_them() -> None:
    headers: Any = snapshot_header_v0
    footers: Any = snapshot_footer_v0
    header = headers.SnapshotHeaderRecord(version=0, last_contained_log_timestamp=1234567890123)
    assert control.encode(SnapshotHeader(last_contained_log_timestamp=1234567890123))[1] == by_kio(header)
    assert control.encode(SnapshotFooter())[1] == by_kio(footers.SnapshotFooterRecord(version=0))


BY_HAND: dict[str, tuple[ControlValue, str, str]] = {
    "commit": (EndTransaction(committed=True, coordinator_epoch=7), "00000001", "000000000007"),
    "abort": (EndTransaction(committed=False, coordinator_epoch=-1), "00000000", "0000ffffffff"),
    "snapshot header": (SnapshotHeader(last_contained_log_timestamp=1), "00000003", "0000000000000000000100"),
    "snapshot footer": (SnapshotFooter(), "00000004", "000000"),
    "kraft version": (KRaftVersion(kraft_version=1), "00000005", "0000000100"),
    "leader change": (
        LeaderChange(leader_id=1, voters=(VoterId(node_id=1),), granting_voters=(VoterId(node_id=1),)),
        "00000002",
        "00000000000102000000010002000000010000",
    ),
    "voters": (Voters(voters=()), "00000006", "00000100"),
}


@pytest.mark.parametrize(("value", "key", "body"), BY_HAND.values(), ids=BY_HAND.keys())
def test_known_bytes_both_ways(value: ControlValue, key: str, body: str) -> None:
    assert control.encode(value) == (bytes.fromhex(key), bytes.fromhex(body))
    assert decoded(value) == value


def test_a_marker_batch_is_what_clients_expect() -> None:
    data = control.marker_batch(
        EndTransaction(committed=True, coordinator_epoch=3),
        producer_id=9,
        producer_epoch=2,
        timestamp=77,
        base_offset=5,
    )
    header = batch.verify(data)
    assert (header.is_control, header.is_transactional, header.record_count) == (True, True, 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (9, 2, -1)
    (theirs,) = list(KafkaPythonRecords(data).next_batch())
    assert theirs.commit
    assert not theirs.abort
    assert (theirs.offset, theirs.timestamp) == (5, 77)


def test_a_control_batch_of_the_metadata_log() -> None:
    values: list[ControlValue] = [SnapshotHeader(last_contained_log_timestamp=5), KRaftVersion(kraft_version=1)]
    data = control.control_batch(values, base_offset=10, timestamp=3, partition_leader_epoch=4)
    header = batch.verify(data)
    assert (header.base_offset, header.partition_leader_epoch, header.is_control) == (10, 4, True)
    assert not header.is_transactional
    assert [control.decode(record) for record in batch.records_of(data)] == values


def test_a_type_from_the_future_is_skipped() -> None:
    assert control.control_type_of(bytes.fromhex("00000007")) is None
    assert control.decode(Record(0, 0, bytes.fromhex("00000007"), b"anything")) is None


def test_tags_from_the_future_are_skipped() -> None:
    tagged = bytes.fromhex("0000000000010200000001010502abcd0100")
    found = control.decode(Record(0, 0, control.control_key(ControlType.LEADER_CHANGE), tagged))
    assert found == LeaderChange(leader_id=1, voters=(VoterId(node_id=1),), granting_voters=())


@pytest.mark.parametrize("key", [None, b"", b"\x00\x00\x00", b"\xff\xff\x00\x01"])
def test_a_key_that_names_no_type_is_corrupt(key: bytes | None) -> None:
    with pytest.raises(CorruptMessage):
        control.decode(Record(0, 0, key, b""))


@pytest.mark.parametrize("kind", ControlType)
@pytest.mark.parametrize("body", [None, b"", b"\x00", b"\xff\xff\x00\x00\x00\x00\x00", b"\x00\x00" + b"\xff" * 3])
def test_values_that_are_no_message_are_corrupt(kind: ControlType, body: bytes | None) -> None:
    if kind is ControlType.KRAFT_VERSION and body is not None and len(body) >= 4 and body[0] == 0:
        assert control.decode(Record(0, 0, control.control_key(kind), body)) == KRaftVersion(kraft_version=-1)
        return
    if kind is ControlType.SNAPSHOT_FOOTER and body is not None and body[:2] == bytes(2):
        assert control.decode(Record(0, 0, control.control_key(kind), body)) == SnapshotFooter()
        return
    with pytest.raises(CorruptMessage):
        control.decode(Record(0, 0, control.control_key(kind), body))


@given(st.sampled_from(ControlType), st.binary(max_size=40))
@settings(max_examples=200)
def test_random_values_raise_only_the_typed_error(kind: ControlType, body: bytes) -> None:
    try:
        found = control.decode(Record(0, 0, control.control_key(kind), b"\x00\x00" + body))
    except CorruptMessage:
        return
    assert found is not None
