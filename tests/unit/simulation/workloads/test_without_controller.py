"""What is noted of an answer: its error codes, wherever they stand in it."""

from __future__ import annotations

from millbeck.server.requests.routes import ROUTES
from millbeck.simulation.workloads.outage_changes import remote_requests
from millbeck.simulation.workloads.outage_requests import NOT_ASKED, Situation, local_requests
from millbeck.simulation.workloads.without_controller import ResponseTimes, error_codes
from millbeck.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from millbeck.wire.schema import schema_of


def test_error_codes_are_found_at_every_level_and_repeated_ones_told_once() -> None:
    partitions = [MetadataResponsePartition(5), MetadataResponsePartition(5), MetadataResponsePartition(0)]
    topics = [MetadataResponseTopic(0, "a", partitions=partitions), MetadataResponseTopic(3, "b")]
    codes = error_codes(MetadataResponse(topics=topics, error_code=29))
    assert sorted(codes) == [0, 0, 3, 5, 29]
    results = [AddPartitionsToTxnPartitionResult(0, 15), AddPartitionsToTxnPartitionResult(1, 15)]
    answer = AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult("t", results)], error_code=0
    )
    assert sorted(error_codes(answer)) == [0, 15]


def test_a_finding_says_what_was_answered_and_when() -> None:
    finding = ResponseTimes(name="Metadata", codes=(0, 3), seconds=1.5, behind_seconds=1.6, limit_s=2.0)
    assert str(finding) == "Metadata: 0,3 after 1.50 s"


def test_every_api_of_clients_is_asked_or_there_is_a_reason() -> None:
    known = Situation(
        survivor=1,
        led_partition=0,
        topic_id=bytes(16),
        groups=[f"g{index}" for index in range(6)],
        transactional_ids=[f"t{index}" for index in range(5)],
        producers={f"t{index}": (index, 0) for index in range(4)},
        now_ms=0,
    )
    asked = {schema_of(type(each.request)).api_key for each in [*local_requests(known), *remote_requests(known)]}
    assert asked | NOT_ASKED.keys() == {route.api_key for route in ROUTES}
    assert not asked & NOT_ASKED.keys()
