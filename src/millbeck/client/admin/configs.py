"""Admin calls for settings: describe, alter, and list resources that have dynamic settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.results import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
    ResourceType,
)
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, InvalidRequest, from_code

Entries = dict[str, ConfigEntry]


def _node_of(resource: ConfigResource) -> int | None:
    """The broker to send the request to: a broker's settings are known only to itself, all other settings to any broker
    (None)."""
    if resource.type not in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) or not resource.name:
        return None
    if not resource.name.isascii() or not resource.name.isdigit():
        raise InvalidRequest(f"the name of a broker resource must be its id, not {resource.name!r}")
    return int(resource.name)


def _by_node(resources: Iterable[ConfigResource]) -> dict[int | None, list[ConfigResource]]:
    grouped: dict[int | None, list[ConfigResource]] = {}
    for resource in resources:
        grouped.setdefault(_node_of(resource), []).append(resource)
    return grouped


async def describe_configs(
    cluster: Cluster,
    resources: Mapping[ConfigResource, Sequence[str] | None],
    *,
    include_synonyms: bool,
    include_documentation: bool,
    timeout_s: float | None,
) -> Outcomes[ConfigResource, Entries]:
    """The settings of each resource by name; only ``names``, or all for None."""
    from millbeck.wire.messages.configs import (
        DescribeConfigsRequest,
        DescribeConfigsResource,
        DescribeConfigsResourceResult,
        DescribeConfigsResponse,
    )

    def entry_of(found: DescribeConfigsResourceResult) -> ConfigEntry:
        return ConfigEntry(
            name=found.name,
            value=found.value,
            source=found.config_source,
            is_read_only=found.read_only,
            is_sensitive=found.is_sensitive,
            synonyms=tuple(
                ConfigSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
                for synonym in found.synonyms
            ),
            type=found.config_type,
            documentation=found.documentation,
        )

    def wanted(resource: ConfigResource) -> DescribeConfigsResource:
        names = resources[resource]
        return DescribeConfigsResource(
            resource_type=resource.type,
            resource_name=resource.name,
            configuration_keys=None if names is None else list(names),
        )

    async def attempt(pending: list[ConfigResource], deadline: Deadline) -> Mapping[ConfigResource, Entries | ApiError]:
        outcomes: dict[ConfigResource, Entries | ApiError] = {}
        for node_id, group in _by_node(pending).items():
            if node_id is not None:
                await cluster.ask_metadata([], deadline)
            request = DescribeConfigsRequest(
                resources=[wanted(resource) for resource in group],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            response = await cluster.request(request, DescribeConfigsResponse, deadline=deadline, node_id=node_id)
            for result in response.results:
                resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
                outcomes[resource] = (
                    from_code(result.error_code, result.error_message or "")
                    if result.error_code
                    else {entry.name: entry for entry in map(entry_of, result.configs)}
                )
        return outcomes

    return await for_each(cluster, resources, attempt, timeout_s=timeout_s)


async def alter_configs(
    cluster: Cluster,
    resources: Mapping[ConfigResource, Mapping[str, str | None]],
    *,
    validate_only: bool,
    timeout_s: float | None,
) -> Outcomes[ConfigResource, ConfigResource]:
    """Replace all dynamic settings of each resource: a setting that is not given is reset to its default."""
    from millbeck.wire.messages.configs import (
        AlterableConfig,
        AlterConfigsRequest,
        AlterConfigsResource,
        AlterConfigsResponse,
    )

    async def ask(
        node_id: int | None, group: list[ConfigResource], deadline: Deadline
    ) -> Mapping[ConfigResource, ConfigResource | ApiError]:
        request = AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[AlterableConfig(name=name, value=value) for name, value in resources[resource].items()],
                )
                for resource in group
            ],
            validate_only=validate_only,
        )
        response = await cluster.request(request, AlterConfigsResponse, deadline=deadline, node_id=node_id)
        return {
            (resource := ConfigResource(ResourceType(result.resource_type), result.resource_name)): (
                from_code(result.error_code, result.error_message or "") if result.error_code else resource
            )
            for result in response.responses
        }

    return await _alter(cluster, resources, ask, timeout_s)


async def incremental_alter_configs(
    cluster: Cluster,
    resources: Mapping[ConfigResource, Sequence[ConfigChange]],
    *,
    validate_only: bool,
    timeout_s: float | None,
) -> Outcomes[ConfigResource, ConfigResource]:
    """Change individual settings of each resource; the others stay unchanged."""
    from millbeck.wire.messages.configs import (
        IncrementalAlterableConfig,
        IncrementalAlterConfigsRequest,
        IncrementalAlterConfigsResource,
        IncrementalAlterConfigsResponse,
    )

    async def ask(
        node_id: int | None, group: list[ConfigResource], deadline: Deadline
    ) -> Mapping[ConfigResource, ConfigResource | ApiError]:
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        IncrementalAlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in resources[resource]
                    ],
                )
                for resource in group
            ],
            validate_only=validate_only,
        )
        response = await cluster.request(request, IncrementalAlterConfigsResponse, deadline=deadline, node_id=node_id)
        return {
            (resource := ConfigResource(ResourceType(result.resource_type), result.resource_name)): (
                from_code(result.error_code, result.error_message or "") if result.error_code else resource
            )
            for result in response.responses
        }

    return await _alter(cluster, resources, ask, timeout_s)


_Ask = Callable[
    [int | None, list[ConfigResource], Deadline], Awaitable[Mapping[ConfigResource, ConfigResource | ApiError]]
]


async def _alter(
    cluster: Cluster, resources: Iterable[ConfigResource], ask: _Ask, timeout_s: float | None
) -> Outcomes[ConfigResource, ConfigResource]:
    async def attempt(
        pending: list[ConfigResource], deadline: Deadline
    ) -> Mapping[ConfigResource, ConfigResource | ApiError]:
        outcomes: dict[ConfigResource, ConfigResource | ApiError] = {}
        for node_id, group in _by_node(pending).items():
            asked = node_id
            if node_id is not None:
                await cluster.ask_metadata([], deadline)
                if node_id not in cluster.metadata.brokers:
                    # The broker is down. Other brokers forward the change to the controller; those of
                    # Apache Kafka refuse it.
                    asked = None
            outcomes.update(await ask(asked, group, deadline))
        return outcomes

    return await for_each(cluster, resources, attempt, timeout_s=timeout_s)


async def list_config_resources(
    cluster: Cluster, types: Iterable[ResourceType], *, timeout_s: float | None
) -> list[ConfigResource]:
    """The resources of these types, or of all types, that have dynamic settings."""
    from millbeck.wire.messages.configs import ListConfigResourcesRequest, ListConfigResourcesResponse

    wanted = [int(entry) for entry in types]

    async def attempt(deadline: Deadline) -> list[ConfigResource]:
        request = ListConfigResourcesRequest(resource_types=wanted)
        response = await cluster.request(request, ListConfigResourcesResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code)
        known = {int(entry) for entry in ResourceType}
        found = (entry for entry in response.config_resources if entry.resource_type in known)
        return [ConfigResource(ResourceType(entry.resource_type), entry.resource_name) for entry in found]

    return await cluster.retrying(attempt, timeout_s=timeout_s)
