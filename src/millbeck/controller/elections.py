"""Leaders are elected by hand and by the controller's own timers.

A leader is also elected whenever its partition changes (`partition_change`); this is about the rest: ElectLeaders, the
return of leadership to preferred replicas, and partitions that nobody may lead but by an unclean election that has been
allowed since.
"""

from __future__ import annotations

from enum import IntEnum

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.election_rules import ElectionRules, PlacedPartition, partitions_where
from millbeck.controller.partition_change import Election
from millbeck.controller.result import RECORD_COUNT_MAX, Result
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
from millbeck.wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)

ELECTION_COUNT_MAX = 1000
"""How many leaders one turn of a timer moves."""


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    image: MetadataImage, rules: ConfigRules, request: ElectLeadersRequest
) -> Result[ElectLeadersResponse]:
    """Of the partitions named, each with its outcome; or of all, and then those that need none are not told of."""
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise InvalidRequest(f"Unknown election type {request.election_type}") from None
    elections = ElectionRules(image, rules)
    records: dict[tuple[str, int], MetadataRecord] = {}
    results: list[ReplicaElectionResult] = []
    wanted: list[tuple[str, list[int]]]
    if request.topic_partitions is None:
        wanted = [(name, sorted(image.topics.by_name[name].partitions)) for name in sorted(image.topics.by_name)]
    else:
        wanted = [(asked.topic, asked.partitions) for asked in request.topic_partitions]
    for name, indexes in wanted:
        outcomes: list[ElectLeadersPartitionResult] = []
        for index in indexes:
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


def balance_leaders(image: MetadataImage, rules: ConfigRules) -> Result[bool]:
    """Give leadership back to preferred replicas that can lead; True when there may be more to do at once."""
    elections = ElectionRules(image, rules)
    records: list[MetadataRecord] = []
    for placed in partitions_where(image, lambda partition: not partition.has_preferred_leader):
        if len(records) >= ELECTION_COUNT_MAX:
            break
        record = _elected(elections, placed, Election.PREFERRED)
        if record is not None:
            records.append(record)
    return Result(response=len(records) >= ELECTION_COUNT_MAX, records=records, is_atomic=False)


def elect_unclean_leaders(image: MetadataImage, rules: ConfigRules) -> Result[bool]:
    """Elect anybody alive where nobody leads and that is allowed; True when there may be more to do at once."""
    elections = ElectionRules(image, rules)
    records: list[MetadataRecord] = []
    for placed in partitions_where(image, lambda partition: partition.leader == NO_LEADER):
        if len(records) >= ELECTION_COUNT_MAX:
            break
        if not elections.allows_unclean(placed.topic.name):
            continue
        record = _elected(elections, placed, Election.UNCLEAN)
        if record is not None:
            records.append(record)
    return Result(response=len(records) >= ELECTION_COUNT_MAX, records=records, is_atomic=False)


def _elect_one(
    image: MetadataImage, elections: ElectionRules, name: str, index: int, election_type: ElectionType
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
    election = Election.PREFERRED if is_preferred else Election.UNCLEAN
    record = _elected(elections, PlacedPartition(topic, index, partition), election)
    if record is None:
        raise PreferredLeaderNotAvailable if is_preferred else EligibleLeadersNotAvailable
    return record


def _elected(elections: ElectionRules, placed: PlacedPartition, election: Election) -> PartitionChangeRecord | None:
    change = elections.change(placed.topic, placed.partition)
    change.election = election
    return change.build(placed.topic.topic_id, placed.partition_id)
