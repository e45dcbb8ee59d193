"""Payloads of the consumer protocol, read and written as other clients do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.group_protocol import (
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    flattened,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.codec import encoder
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.classic_groups import ConsumerProtocolSubscription

PARTITIONS = st.lists(st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 9)), unique=True)


@given(PARTITIONS)
def test_an_assignment_reads_back(partitions: list[TopicPartition]) -> None:
    assert decode_assignment(encode_assignment(partitions)) == sorted(partitions)
    assert flattened(by_topic(partitions)) == sorted(partitions)


def test_an_assignment_s_bytes() -> None:
    expected = bytes.fromhex("0001 00000001 0001 74 00000002 00000000 00000003 ffffffff")
    assert encode_assignment([TopicPartition("t", 3), TopicPartition("t", 0)]) == expected


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_subscriptions_of_every_version_are_read(version: int) -> None:
    sent = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"x")
    payload = version.to_bytes(2, "big") + encoder(ConsumerProtocolSubscription, version)(sent)
    assert decode_subscription(payload) == sent


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    sent = ConsumerProtocolSubscription(topics=["a"], generation_id=5, rack_id="r")
    payload = bytearray(encode_subscription(sent))
    payload[1] = 9
    assert decode_subscription(bytes(payload) + b"something new") == sent


def test_no_assignment_at_all_is_an_empty_one() -> None:
    assert decode_assignment(b"") == []


@pytest.mark.parametrize("payload", [b"\0", b"\xff\xff", b"\0\1\0\0\0\5", b"\0\1\xff"])
def test_nonsense_is_a_decode_error(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_assignment(payload)
    with pytest.raises(DecodeError):
        decode_subscription(payload)
