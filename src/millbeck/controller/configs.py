"""AlterConfigs and IncrementalAlterConfigs: dynamic options of topics, brokers and groups.

AlterConfigs replaces all options of a resource; IncrementalAlterConfigs sets, deletes, appends to and removes from
single options. In both, each resource of the request succeeds or fails as a whole, independently of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TypeVar

from millbeck.controller import eligible_leaders
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.policies import NO_POLICIES, Policies
from millbeck.controller.result import RECORD_COUNT_MAX, Result, Steps
from millbeck.kernel.errors import (
    ApiError,
    BrokerIdNotRegistered,
    InvalidConfig,
    InvalidRequest,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from millbeck.metadata.image import ConfigResource, MetadataImage, ResourceType
from millbeck.metadata.records import ConfigRecord, MetadataRecord
from millbeck.wire.messages import configs as configs_messages
from millbeck.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

T = TypeVar("T", configs_messages.AlterConfigsResource, configs_messages.IncrementalAlterConfigsResource)


class AlterConfigOp(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigurationControl:
    """AlterConfigs and IncrementalAlterConfigs."""

    def __init__(self, rules: ConfigRules, policies: Policies = NO_POLICIES) -> None:
        self._rules = rules
        self._policies = policies

    def alter(self, image: MetadataImage, request: AlterConfigsRequest) -> Steps[Result[AlterConfigsResponse]]:
        """Replace the options of each resource: those that are not in the request are deleted."""
        records, errors = yield from self._each(image, request.resources, self._replaced)
        responses = [
            configs_messages.AlterConfigsResourceResponse(
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.message,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in errors.items()
        ]
        response = AlterConfigsResponse(responses=responses)
        return Result(response=response, records=[] if request.validate_only else records)

    def alter_incrementally(
        self, image: MetadataImage, request: IncrementalAlterConfigsRequest
    ) -> Steps[Result[IncrementalAlterConfigsResponse]]:
        records, errors = yield from self._each(image, request.resources, self._changed)
        responses = [
            configs_messages.AlterConfigsResourceResponse(
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.message,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error in errors.items()
        ]
        response = IncrementalAlterConfigsResponse(responses=responses)
        return Result(response=response, records=[] if request.validate_only else records)

    def _each(
        self,
        image: MetadataImage,
        asked: Sequence[T],
        options_of: Callable[[MetadataImage, ConfigResource, T], dict[str, str | None]],
    ) -> Steps[tuple[list[MetadataRecord], dict[ConfigResource, ApiError | None]]]:
        """The records for all valid resources, and the error of each resource."""
        counts = Counter(ConfigResource(one.resource_type, one.resource_name) for one in asked)
        records: list[MetadataRecord] = []
        errors: dict[ConfigResource, ApiError | None] = {}
        for one in asked:
            resource = ConfigResource(one.resource_type, one.resource_name)
            try:
                if counts[resource] > 1:
                    raise InvalidRequest("Each resource must appear at most once.")
                changes = options_of(image, resource, one)
                made = self._records_for(image, resource, changes)
                # Options that AlterConfigs deletes because they are not in the request are not shown, as in Kafka.
                named = {config.name: changes[config.name] for config in one.configs}
                self._policies.check_configs(ResourceType(resource.type).name, resource.name, named)
                records += made
                errors[resource] = None
            except ApiError as error:
                errors[resource] = error
            yield
        if len(records) > RECORD_COUNT_MAX:
            too_much = PolicyViolation("Unable to perform excessively large batch operation.")
            return [], dict.fromkeys(errors, too_much)
        return records, errors

    def _replaced(
        self, image: MetadataImage, resource: ConfigResource, asked: configs_messages.AlterConfigsResource
    ) -> dict[str, str | None]:
        _check_names([config.name for config in asked.configs])
        _check_values({config.name: config.value for config in asked.configs})
        wanted: dict[str, str | None] = {config.name: config.value for config in asked.configs}
        for name in image.configs.of(resource):
            wanted.setdefault(name, None)
        return wanted

    def _changed(
        self, image: MetadataImage, resource: ConfigResource, asked: configs_messages.IncrementalAlterConfigsResource
    ) -> dict[str, str | None]:
        _check_names([config.name for config in asked.configs])
        values = {
            config.name: config.value for config in asked.configs if config.config_operation != AlterConfigOp.DELETE
        }
        _check_values(values)
        return {config.name: self._after(image, resource, config) for config in asked.configs}

    def _after(self, image: MetadataImage, resource: ConfigResource, config: IncrementalAlterableConfig) -> str | None:
        """The option's value after the operation; None if it is deleted."""
        match config.config_operation:
            case AlterConfigOp.SET:
                return config.value
            case AlterConfigOp.DELETE:
                return None
            case AlterConfigOp.APPEND | AlterConfigOp.SUBTRACT:
                return self._edited_list(image, resource, config)
            case _:
                raise InvalidRequest(f"Unknown operation type {config.config_operation}")

    def _edited_list(self, image: MetadataImage, resource: ConfigResource, config: IncrementalAlterableConfig) -> str:
        operation = AlterConfigOp(config.config_operation)
        if not self._rules.is_list(resource, config.name):
            raise InvalidConfig(f"Can't {operation.name} to key {config.name} because its type is not LIST.")
        before = image.configs.of(resource).get(config.name)
        if before is None:
            before = self._rules.value_in_force(image.configs, resource, config.name)
        entries = dict.fromkeys(entry for entry in (before or "").split(",") if entry)
        for entry in (config.value or "").split(","):
            if operation is AlterConfigOp.APPEND:
                entries.setdefault(entry)
            else:
                entries.pop(entry, None)
        return ",".join(entry for entry in entries if entry)

    def _records_for(
        self, image: MetadataImage, resource: ConfigResource, changes: Mapping[str, str | None]
    ) -> list[MetadataRecord]:
        before = image.configs.of(resource)
        after = {name: text for name, text in before.items() if name not in changes}
        after |= {name: text for name, text in changes.items() if text is not None}
        _check_broker_name(resource)
        self._rules.check(resource, after, list(changes))
        _check_exists(image, resource)
        follow_ups: list[MetadataRecord] = []
        if image.features.tracks_eligible_leaders:
            eligible_leaders.check_option(resource, changes)
            follow_ups = eligible_leaders.records_for_option(image, resource, changes)
        # A broker's options are written even if they are unchanged: that makes brokers reload files (KAFKA-14136).
        options: list[MetadataRecord] = [
            ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=text)
            for name, text in changes.items()
            if resource.type == ResourceType.BROKER or before.get(name) != text
        ]
        return options + follow_ups


def _check_names(names: list[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidRequest(f"Error due to duplicate config keys : {','.join(twice)}")


def _check_values(values: Mapping[str, str | None]) -> None:
    missing = [name for name, value in values.items() if value is None]
    if missing:
        raise InvalidRequest(f"Null value not supported for : {','.join(missing)}")


def _check_broker_name(resource: ConfigResource) -> None:
    if resource.type != ResourceType.BROKER or not resource.name:
        return
    if not (resource.name.isascii() and resource.name.lstrip("-").isdigit()):
        raise InvalidRequest("Unable to parse broker name as a base 10 number.")
    if int(resource.name) < 0:
        raise InvalidRequest("Invalid negative broker ID.")


def _check_exists(image: MetadataImage, resource: ConfigResource) -> None:
    if resource.type == ResourceType.TOPIC and image.topics.named(resource.name) is None:
        raise UnknownTopicOrPartition(f"The topic '{resource.name}' does not exist.")
    if resource.type == ResourceType.BROKER and resource.name and int(resource.name) not in image.cluster.brokers:
        raise BrokerIdNotRegistered(f"No node with id {resource.name} found.")
