"""CreateTopics and DeleteTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.options import ControllerOptions
from millbeck.controller.placement import check_assignment, new_partition, place
from millbeck.controller.policies import NO_POLICIES, Policies, TopicRequest
from millbeck.controller.result import RECORD_COUNT_MAX, RECORDS_AT_ONCE, Result, Steps
from millbeck.kernel.environment import Randomness
from millbeck.kernel.errors import (
    ApiError,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC, check_topic_name, unify_collision_chars
from millbeck.metadata.image import ConfigResource, MetadataImage, PartitionRegistration, ResourceType, TopicImage
from millbeck.metadata.records import ConfigRecord, MetadataRecord, RemoveTopicRecord, TopicRecord
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


class TopicControl:
    """Creates and deletes topics."""

    def __init__(self, options: ControllerOptions, rules: ConfigRules, policies: Policies = NO_POLICIES) -> None:
        self._options = options
        self._rules = rules
        self._policies = policies

    def create(
        self,
        image: MetadataImage,
        request: CreateTopicsRequest,
        *,
        randomness: Randomness,
        may_describe_configs: Callable[[str], bool],
    ) -> Steps[Result[CreateTopicsResponse]]:
        """Create or refuse each topic separately; a request that exceeds the limits is refused as a whole."""
        counts = Counter(topic.name for topic in request.topics)
        collisions: dict[str, str] | None = None
        records: list[MetadataRecord] = []
        results: list[CreatableTopicResult] = []
        refusal = self._refuse_all(request)
        for topic in {topic.name: topic for topic in request.topics}.values():
            try:
                if refusal is not None:
                    raise refusal
                if counts[topic.name] > 1:
                    raise InvalidRequest("Duplicate topic name.")
                if collisions is None and _may_collide(topic.name):
                    collisions = {
                        unify_collision_chars(name): name for name in image.topics.by_name if _may_collide(name)
                    }
                new_records, result = yield from self._create_one(
                    image, topic, collisions or {}, randomness, may_describe_configs(topic.name)
                )
            except ApiError as error:
                results.append(
                    CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
                )
                continue
            records += new_records
            results.append(result)
            if collisions is not None and _may_collide(topic.name):
                collisions[unify_collision_chars(topic.name)] = topic.name
        if len(records) > RECORD_COUNT_MAX:
            return Result(response=_all_refused(request, PolicyViolation(_TOO_MUCH)))
        return Result(response=CreateTopicsResponse(topics=results), records=[] if request.validate_only else records)

    def delete(self, image: MetadataImage, request: DeleteTopicsRequest) -> Steps[Result[DeleteTopicsResponse]]:
        """Delete topics by name or id; refused ones are skipped."""
        states = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
        records: list[MetadataRecord] = []
        results: list[DeletableTopicResult] = []
        names = Counter(state.name for state in states if state.name is not None)
        ids = Counter(state.topic_id for state in states if state.topic_id != ZERO_UUID)
        gone: dict[Uuid, None] = {}
        asked = {(state.name, state.topic_id): state for state in states}
        for state in asked.values():
            yield
            try:
                topic = self._to_delete(image, state, names, ids)
                if topic.topic_id in gone:
                    raise InvalidRequest("The provided topic name maps to an ID that was already supplied.")
            except ApiError as error:
                results.append(
                    DeletableTopicResult(
                        name=state.name, topic_id=state.topic_id, error_code=error.code, error_message=error.message
                    )
                )
                continue
            gone[topic.topic_id] = None
            records.append(RemoveTopicRecord(topic_id=topic.topic_id))
            results.append(DeletableTopicResult(name=topic.name, topic_id=topic.topic_id))
        return Result(response=DeleteTopicsResponse(responses=results), records=records)

    def _refuse_all(self, request: CreateTopicsRequest) -> ApiError | None:
        total = 0
        for topic in request.topics:
            if topic.assignments:
                total += len(topic.assignments)
            elif topic.num_partitions == -1:
                total += self._options.partition_count_default
            else:
                total += max(topic.num_partitions, 0)
        return (
            PolicyViolation("Excessively large number of partitions per request.") if total > RECORD_COUNT_MAX else None
        )

    def _create_one(
        self,
        image: MetadataImage,
        topic: CreatableTopic,
        collisions: Mapping[str, str],
        randomness: Randomness,
        reports_configs: bool,
    ) -> Steps[tuple[list[MetadataRecord], CreatableTopicResult]]:
        _check_name(image, topic.name, collisions)
        options = _options_of(topic)
        resource = ConfigResource(ResourceType.TOPIC, topic.name)
        self._rules.check(resource, options, list(options))
        partitions = yield from self._partitions_of(image, topic, randomness)
        self._policies.check_topic(_policy_request(topic, options, partitions))
        topic_id = randomness.uuid()
        records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
        records += [
            ConfigRecord(resource_type=resource.type, resource_name=topic.name, name=name, value=options[name])
            for name in options
        ]
        for index, partition in enumerate(partitions):
            if index % RECORDS_AT_ONCE == 0:
                yield
            records.append(partition.to_record(topic_id, index))
        result = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
        if reports_configs:
            result.num_partitions = len(partitions)
            result.replication_factor = len(partitions[0].replicas)
            result.configs = self._rules.topic_configs(image.configs, options)
        else:
            result.topic_config_error_code = TopicAuthorizationFailed.code
        return records, result

    def _partitions_of(
        self, image: MetadataImage, topic: CreatableTopic, randomness: Randomness
    ) -> Steps[list[PartitionRegistration]]:
        if topic.assignments:
            return (yield from _assigned_partitions(image, topic))
        if topic.replication_factor < -1 or topic.replication_factor == 0:
            raise InvalidReplicationFactor("Replication factor must be larger than 0, or -1 to use the default value.")
        if topic.num_partitions < -1 or topic.num_partitions == 0:
            raise InvalidPartitions("Number of partitions was set to an invalid non-positive value.")
        count = self._options.partition_count_default if topic.num_partitions == -1 else topic.num_partitions
        factor = (
            self._options.replication_factor_default if topic.replication_factor == -1 else topic.replication_factor
        )
        placed = yield from place(
            image.cluster, partition_count=count, replication_factor=factor, randomness=randomness
        )
        partitions: list[PartitionRegistration] = []
        for number, assignment in enumerate(placed):
            if number % RECORDS_AT_ONCE == 0:
                yield
            partition = new_partition(image.cluster, assignment.replicas)
            if partition is not None:
                partitions.append(partition)
        return partitions

    def _to_delete(
        self, image: MetadataImage, state: DeleteTopicState, names: Mapping[str, int], ids: Mapping[Uuid, int]
    ) -> TopicImage:
        if not self._options.delete_topics:
            raise TopicDeletionDisabled
        if state.name is not None:
            if state.topic_id != ZERO_UUID:
                raise InvalidRequest("You may not specify both topic name and topic id.")
            if names[state.name] > 1:
                raise InvalidRequest("Duplicate topic name.")
            topic = image.topics.named(state.name)
            if topic is None:
                raise UnknownTopicOrPartition
            return topic
        if state.topic_id == ZERO_UUID:
            raise InvalidRequest("Neither topic name nor id were specified.")
        if ids[state.topic_id] > 1:
            raise InvalidRequest("Duplicate topic id.")
        topic = image.topics.with_id(state.topic_id)
        if topic is None:
            raise UnknownTopicId
        return topic


def _policy_request(
    topic: CreatableTopic, options: Mapping[str, str], partitions: list[PartitionRegistration]
) -> TopicRequest:
    is_assigned = bool(topic.assignments)
    return TopicRequest(
        name=topic.name,
        partition_count=None if is_assigned else len(partitions),
        replication_factor=None if is_assigned else len(partitions[0].replicas),
        assignments=dict(enumerate(each.replicas for each in partitions)) if is_assigned else None,
        configs=options,
    )


_TOO_MUCH = "Unable to perform excessively large batch operation."


def _may_collide(name: str) -> bool:
    return "." in name or "_" in name


def _check_name(image: MetadataImage, name: str, collisions: Mapping[str, str]) -> None:
    check_topic_name(name)
    if name == CLUSTER_METADATA_TOPIC:
        raise InvalidRequest(f"Creation of internal topic {name} is prohibited.")
    if image.topics.named(name) is not None:
        raise TopicAlreadyExists(f"Topic '{name}' already exists.")
    other = collisions.get(unify_collision_chars(name)) if _may_collide(name) else None
    if other is not None:
        raise InvalidTopic(f"Topic '{name}' collides with existing topic: {other}")


def _options_of(topic: CreatableTopic) -> dict[str, str]:
    missing = [config.name for config in topic.configs if config.value is None]
    if missing:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(missing)}")
    return {config.name: config.value for config in topic.configs if config.value is not None}


def _assigned_partitions(image: MetadataImage, topic: CreatableTopic) -> Steps[list[PartitionRegistration]]:
    if topic.replication_factor != -1:
        raise InvalidRequest("A manual partition assignment was specified, but replication factor was not set to -1.")
    if topic.num_partitions != -1:
        raise InvalidRequest("A manual partition assignment was specified, but numPartitions was not set to -1.")
    partitions: dict[int, PartitionRegistration] = {}
    replica_count: int | None = None
    for number, assignment in enumerate(topic.assignments):
        if number % RECORDS_AT_ONCE == 0:
            yield
        index = assignment.partition_index
        if index in partitions:
            raise InvalidReplicaAssignment(f"Found multiple manual partition assignments for partition {index}")
        check_assignment(image.cluster, assignment.broker_ids, replica_count)
        replica_count = len(assignment.broker_ids)
        partition = new_partition(image.cluster, tuple(assignment.broker_ids))
        if partition is None:
            raise InvalidReplicaAssignment(
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown."
            )
        partitions[index] = partition
    if any(index not in partitions for index in range(len(partitions))):
        raise InvalidReplicaAssignment("partitions should be a consecutive 0-based integer sequence")
    return [partitions[index] for index in range(len(partitions))]


def _all_refused(request: CreateTopicsRequest, error: ApiError) -> CreateTopicsResponse:
    names = {topic.name: None for topic in request.topics}
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=error.code, error_message=error.message) for name in names]
    )
