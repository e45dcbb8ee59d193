"""Errors of the client are errors of the protocol too, with the right answer to "again?"."""

from __future__ import annotations

import pytest

from millbeck.client import errors
from millbeck.client.errors import heartbeat_error
from millbeck.kernel.errors import ApiError, FencedMemberEpoch, GroupIdNotFound, UnknownMemberId, by_code

RETRIABLE = {
    "Disconnected": True,
    "ConnectFailed": True,
    "ConnectionClosed": True,
    "RequestTimeout": True,
    "ProtocolViolation": True,
    "UnsupportedByBroker": False,
    "NoBrokerReachable": True,
    "ClientClosed": False,
    "BufferExhausted": True,
    "DeliveryTimeout": True,
    "NoOffsetForPartition": False,
    "LogTruncated": False,
}


@pytest.mark.parametrize(("name", "retriable"), RETRIABLE.items())
def test_retriable(name: str, retriable: bool) -> None:
    error = getattr(errors, name)
    assert issubclass(error, ApiError)
    assert error.retriable is retriable
    assert str(error()) == error.__doc__


def test_the_table_of_codes_is_left_alone() -> None:
    assert not {kind for kind in by_code.values() if kind.__module__ == errors.__name__}


@pytest.mark.parametrize(("epoch", "wanted"), [(0, GroupIdNotFound), (-1, GroupIdNotFound), (3, UnknownMemberId)])
def test_who_was_a_member_of_a_group_that_is_gone_joins_again(epoch: int, wanted: type[ApiError]) -> None:
    error = heartbeat_error(GroupIdNotFound.code, "Group g not found.", epoch)
    assert (type(error), error.message) == (wanted, "Group g not found.")
    assert type(heartbeat_error(FencedMemberEpoch.code, None, epoch)) is FencedMemberEpoch
