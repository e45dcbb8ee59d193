"""ElectLeaders, preferred leader election, and unclean elections by timer.

Leaders are also elected whenever a partition changes (`partition_change`). This module handles the other cases:
ElectLeaders, moving leadership back to preferred replicas, and leaderless partitions for which unclean elections have
been allowed since.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionContext, TopicPartitionRegistration, find_partitions
from millbeck.controller.partition_change import ElectionMode
from millbeck.controller.result import RECORD_COUNT_MAX, RECORDS_AT_ONCE, Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidRequest,
    PolicyViolation,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import NO_LEADER, MetadataRecord, PartitionChangeRecord
from millbeck.wire.messages.replicas import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)

ELECTION_COUNT_MAX = 1000
"""The maximum number of leaders moved per timer expiration."""


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    image: MetadataImage, rules: ConfigRules, request: ElectLeadersRequest
) -> Steps[Result[ElectLeadersResponse]]:
    """Elect leaders for the given partitions, with a result for each; or for all, with results only of changed ones."""
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise InvalidRequest(f"Unknown election type {request.election_type}") from None
    elections = ElectionContext(image, rules)
    records: dict[tuple[str, int], MetadataRecord] = {}
    results: list[ReplicaElectionResult] = []
    wanted: list[tuple[str, list[int]]]
    if request.topic_partitions is None:
        wanted = [(name, sorted(image.topics.by_name[name].partitions)) for name in sorted(image.topics.by_name)]
    else:
        wanted = [(asked.topic, asked.partitions) for asked in request.topic_partitions]
    looked_at = 0
    for name, indexes in wanted:
        outcomes: list[ElectLeadersPartitionResult] = []
        for index in indexes:
            looked_at += 1
            if looked_at % RECORDS_AT_ONCE == 0:
                yield
            outcome = ElectLeadersPartitionResult(partition_id=index, error_message=None)
            try:
                records[(name, index)] = _elect_one(image, elections, name, index, election_type)
            except ElectionNotNeeded as error:
                if request.topic_partitions is None:
                    continue
                outcome.error_code, outcome.error_message = error.code, error.message
            except ApiError as error:
                outcome.error_code, outcome.error_message = error.code, error.message
            outcomes.append(outcome)
        results.append(ReplicaElectionResult(topic=name, partition_result=outcomes))
    if len(records) > RECORD_COUNT_MAX:
        raise PolicyViolation("Unable to perform excessively large batch operation.")
    return Result(
        response=ElectLeadersResponse(replica_election_results=results),
        records=list(records.values()),
        is_atomic=False,
    )


def balance_leaders(image: MetadataImage, rules: ConfigRules) -> Steps[Result[bool]]:
    """Move leadership to preferred replicas; returns True if more partitions may remain."""
    elections = ElectionContext(image, rules)
    records: list[MetadataRecord] = []
    looked_at = 0
    for placed in find_partitions(image, lambda partition: not partition.has_preferred_leader):
        if len(records) >= ELECTION_COUNT_MAX:
            break
        looked_at += 1
        if placed is None or looked_at % RECORDS_AT_ONCE == 0:
            yield
        if placed is None:
            continue
        record = _elected_or_passed_over(elections, rules, placed, ElectionMode.PREFERRED)
        if record is not None:
            records.append(record)
    return Result(response=len(records) >= ELECTION_COUNT_MAX, records=records, is_atomic=False)


def elect_unclean_leaders(image: MetadataImage, rules: ConfigRules) -> Steps[Result[bool]]:
    """Elect any live replica for leaderless partitions that allow it; returns True if more may remain."""
    elections = ElectionContext(image, rules)
    records: list[MetadataRecord] = []
    looked_at = 0
    for placed in find_partitions(image, lambda partition: partition.leader == NO_LEADER):
        if len(records) >= ELECTION_COUNT_MAX:
            break
        looked_at += 1
        if placed is None or looked_at % RECORDS_AT_ONCE == 0:
            yield
        if placed is None:
            continue
        if not elections.allows_unclean(placed.topic.name):
            continue
        record = _elected_or_passed_over(elections, rules, placed, ElectionMode.UNCLEAN)
        if record is not None:
            records.append(record)
    return Result(response=len(records) >= ELECTION_COUNT_MAX, records=records, is_atomic=False)


def _elect_one(
    image: MetadataImage, elections: ElectionContext, name: str, index: int, election_type: ElectionType
) -> PartitionChangeRecord:
    topic = image.topics.named(name)
    if topic is None:
        raise UnknownTopicOrPartition(f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition(f"No such partition as {name}-{index}")
    is_preferred = election_type is ElectionType.PREFERRED
    if partition.has_preferred_leader if is_preferred else partition.has_leader:
        raise ElectionNotNeeded
    election = ElectionMode.PREFERRED if is_preferred else ElectionMode.UNCLEAN
    record = _elected(elections, TopicPartitionRegistration(topic, index, partition), election)
    if record is None:
        raise PreferredLeaderNotAvailable if is_preferred else EligibleLeadersNotAvailable
    return record


def _elected_or_passed_over(
    elections: ElectionContext, rules: ConfigRules, placed: TopicPartitionRegistration, election: ElectionMode
) -> PartitionChangeRecord | None:
    """As `_elected`, but a failed election is skipped, so that the other elections still take place."""
    entity = ("election", placed.topic.name, placed.partition_id)
    return rules.isolation.run(entity, partial(_elected, elections, placed, election))


def _elected(
    elections: ElectionContext, placed: TopicPartitionRegistration, election: ElectionMode
) -> PartitionChangeRecord | None:
    change = elections.change(placed.topic, placed.partition)
    change.election = election
    return change.build(placed.topic.topic_id, placed.partition_id)
