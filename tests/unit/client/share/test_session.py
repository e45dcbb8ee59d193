from __future__ import annotations

from typing import Any

from millbeck.client.share.session import AcknowledgeType, ShareFetchLimits, ShareSessionHandler
from millbeck.kernel.units import INT_MAX

A, B = (b"a" * 16, 0), (b"a" * 16, 1)
LIMITS = ShareFetchLimits(500, 1, 1000, 10, False)


def _topics(request: Any) -> list[tuple[int, list[tuple[int, int, list[int]]]]]:
    return [
        (each.partition_index, [(one.first_offset, one.last_offset, one.acknowledge_types) for one in _batches(each)])
        for topic in request.topics
        for each in topic.partitions
    ]


def _batches(partition: Any) -> list[Any]:
    return list(partition.acknowledgement_batches)


def test_a_request_carries_only_what_changed() -> None:
    session = ShareSessionHandler("g", "m")
    first = session.fetch_request([A, B], LIMITS, {})
    assert (first.share_session_epoch, _topics(first)) == (0, [(0, []), (1, [])])
    session.answered()
    second = session.fetch_request([A], LIMITS, {})
    assert (second.share_session_epoch, _topics(second)) == (1, [])
    assert [(each.topic_id, each.partitions) for each in second.forgotten_topics_data] == [(A[0], [1])]


def test_what_was_said_goes_out_once_in_as_few_batches_as_can_be() -> None:
    session = ShareSessionHandler("g", "m")
    session.fetch_request([A], LIMITS, {})
    session.answered()
    for offset in (3, 1, 2):
        session.acknowledge(A, offset, AcknowledgeType.ACCEPT)
    session.acknowledge(A, 4, AcknowledgeType.RELEASE)
    session.acknowledge(A, 9, AcknowledgeType.RELEASE)
    assert session.has_acknowledgements
    request = session.fetch_request([A], LIMITS, session.take_acknowledgements())
    assert _topics(request) == [(0, [(1, 3, [1]), (4, 4, [2]), (9, 9, [2])])]
    assert not session.has_acknowledgements


def test_an_acknowledgement_says_whether_it_renews_and_whether_it_is_the_last() -> None:
    session = ShareSessionHandler("g", "m")
    session.answered()
    session.acknowledge(A, 1, AcknowledgeType.RENEW)
    request = session.acknowledge_request(session.take_acknowledgements())
    assert (request.share_session_epoch, request.is_renew_ack, _topics(request)) == (1, True, [(0, [(1, 1, [4])])])
    last = session.acknowledge_request({}, is_last=True)
    assert (last.share_session_epoch, last.is_renew_ack) == (-1, False)


def test_a_session_that_begins_anew_forgets() -> None:
    session = ShareSessionHandler("g", "m")
    session.fetch_request([A], LIMITS, {})
    session.answered()
    session.acknowledge(A, 1, AcknowledgeType.ACCEPT)
    assert session.reset() == {A: {1: AcknowledgeType.ACCEPT}}
    assert not session.is_open
    assert _topics(session.fetch_request([A], LIMITS, {})) == [(0, [])]
    session.epoch = INT_MAX
    session.answered()
    assert session.epoch == 1
