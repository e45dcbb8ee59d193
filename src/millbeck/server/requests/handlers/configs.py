"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources: configs of topics, brokers and groups.

Behaviour
- DescribeConfigs lists every option with its value and its source, and on request its synonyms, type and documentation.
  Secrets are never shown.
- A broker's configs are described by that broker alone; the name "" is the default of all brokers and shows only
  dynamic configs.
- AlterConfigs replaces all configs of a resource, IncrementalAlterConfigs changes some. A resource named twice is
  refused, and so is one the client may not alter.
Versions
- DescribeConfigs 3: types and documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from typing import Any, Final, TypeVar

from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.names import check_topic_name
from millbeck.kernel.option_declarations import Scope
from millbeck.kernel.option_layers import SynonymValue
from millbeck.kernel.options import ConfigLayers, ConfigSource, Option, Update, resolve_option
from millbeck.metadata.image import ResourceType as ConfigType
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.tls_settings import check_tls_settings
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from millbeck.wire.messages.configs import AlterConfigsResourceResponse as IncrementalResourceResponse

T = TypeVar("T")

OWN_SOURCES: Final = (ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.GROUP_CONFIG)
GROUPS_DESCRIBED_MAX: Final = 1000
"""Limit per request: every name is a valid group, and a group has all group configs."""

_OPERATION_RESOURCE: Final = {
    ConfigType.TOPIC: (ResourceType.TOPIC, TopicAuthorizationFailed),
    ConfigType.GROUP: (ResourceType.GROUP, GroupAuthorizationFailed),
}


def _check_may(call: Call, operation: Operation, resource_type: int, name: str) -> None:
    kind, refusal = _OPERATION_RESOURCE.get(
        ConfigType(resource_type) if resource_type in list(ConfigType) else ConfigType.UNKNOWN,
        (ResourceType.CLUSTER, ClusterAuthorizationFailed),
    )
    if not call.may(operation, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else name):
        raise refusal


def _altering(call: Call, resource_type: int) -> Operation:
    """The authorization for changing a resource; as in Kafka, changing a controller's loggers takes an operation on the
    cluster."""
    connection = call.connection
    is_direct = isinstance(call, Call) and connection.listener.is_controllers
    is_logger = resource_type == ConfigType.BROKER_LOGGER
    return Operation.CLUSTER_ACTION if is_direct and is_logger else Operation.ALTER_CONFIGS


# DescribeConfigs


def describe_error(
    request: DescribeConfigsRequest | None, version: int, error: ApiError
) -> DescribeConfigsResponse | None:
    if request is None:
        return None
    results = [
        DescribeConfigsResult(error.code, error.message, each.resource_type, each.resource_name)
        for each in request.resources
    ]
    return DescribeConfigsResponse(results=results)


@handles(
    32,
    needs=[
        Need(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, when="the resource is a topic"),
        Need(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, when="the resource is a group"),
        Need(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, when="the resource is anything else"),
    ],
    error_reply=describe_error,
)
async def handle_describe_configs(call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    slices = TimeSlices(call.broker.environment.clock)
    results = []
    groups_left = GROUPS_DESCRIBED_MAX
    # Ten bytes of a request cause 100 KB of response: no resource is described twice.
    for resource in {(each.resource_type, each.resource_name): each for each in request.resources}.values():
        is_group = resource.resource_type == ConfigType.GROUP
        groups_left -= is_group
        if is_group and groups_left < 0:
            refusal = InvalidRequest(f"more than {GROUPS_DESCRIBED_MAX} groups in one request")
            results.append(
                DescribeConfigsResult(refusal.code, refusal.message, resource.resource_type, resource.resource_name)
            )
        else:
            results.append(_describe(call, request, resource))
        await slices.yield_to_loop()
    return DescribeConfigsResponse(results=results)


def _describe(call: Call, request: DescribeConfigsRequest, resource: DescribeConfigsResource) -> DescribeConfigsResult:
    result = DescribeConfigsResult(0, "", resource.resource_type, resource.resource_name)
    try:
        _check_may(call, Operation.DESCRIBE_CONFIGS, resource.resource_type, resource.resource_name)
        wanted = None if resource.configuration_keys is None else dict.fromkeys(resource.configuration_keys)
        result.configs = [
            _entry(request, declared, layers, is_read_only=is_read_only)
            for declared, layers, is_read_only in _options_of(call, resource)
            if not declared.internal and (wanted is None or declared.name in wanted)
        ]
    except ApiError as error:
        result.error_code = error.code
        result.error_message = error.message
    return result


def _options_of(call: Call, resource: DescribeConfigsResource) -> Iterable[tuple[Option[Any], ConfigLayers, bool]]:
    broker, name = call.broker, resource.resource_name
    image = broker.image
    match resource.resource_type:
        case ConfigType.TOPIC:
            check_topic_name(name)
            if image.topics.named(name) is None:
                raise UnknownTopicOrPartition
            layers = broker.layers(image, image.configs.of_topic(name))
            return [(declared, layers, False) for declared in TOPIC_OPTIONS]
        case ConfigType.GROUP:
            if not name:
                raise InvalidRequest("Group name must not be empty")
            layers = broker.layers(image, image.configs.of_group(name))
            return [(declared, layers, False) for declared in broker.config.group_option_set]
        case ConfigType.BROKER if not name:
            return _dynamic_defaults(call, image.configs.of_all_brokers())
        case ConfigType.BROKER:
            if name != str(broker.node_id):
                raise InvalidRequest(
                    f"Unexpected broker id, expected {broker.node_id} or empty string, but received {name}"
                )
            layers = broker.layers(image, {})
            options = broker.config.described_options(layers)
            return [(declared, layers, declared.update is Update.READ_ONLY) for declared in options]
        case ConfigType.CLIENT_METRICS | ConfigType.BROKER_LOGGER:
            return []
        case _:
            raise InvalidRequest(f"Unsupported resource type: {resource.resource_type}")


def _dynamic_defaults(call: Call, texts: Mapping[str, str]) -> list[tuple[Option[Any], ConfigLayers, bool]]:
    options = call.broker.config.option_set
    layers = ConfigLayers(dynamic_default=texts)
    return [(options[name], layers, False) for name in texts if name in options]


def _entry(
    request: DescribeConfigsRequest, declared: Option[Any], layers: ConfigLayers, *, is_read_only: bool
) -> DescribeConfigsResourceResult:
    resolved = resolve_option(declared, layers)
    chain = _chain(declared, resolved.synonyms)
    entry = DescribeConfigsResourceResult(
        declared.name,
        None if resolved.is_hidden else declared.text(resolved.value),
        is_read_only,
        chain[0].source if chain else ConfigSource.DEFAULT_CONFIG,
        resolved.is_hidden,
        config_type=declared.kind.code,
    )
    if request.include_synonyms:
        entry.synonyms = [
            DescribeConfigsSynonym(link.name, link.text, link.source)
            for link in chain
            if link.source is not ConfigSource.UNKNOWN
        ]
    entry.documentation = declared.doc if request.include_documentation else None
    return entry


def _chain(declared: Option[Any], links: Sequence[SynonymValue]) -> list[SynonymValue]:
    """The synonyms of an option, as Kafka shows them: none before one under the broker option's first name.

    So ``log.retention.hours`` alone is not shown for ``retention.ms``, which then counts as a default.
    """
    if declared.scope is Scope.BROKER:
        return list(dropwhile(lambda link: link.name != declared.name, links))
    own = [link for link in links[:1] if link.name == declared.name and link.source in OWN_SOURCES]
    if not declared.synonyms and declared.scope is Scope.TOPIC:
        return own
    if not declared.synonyms:
        return [*own, SynonymValue(declared.name, declared.default_text, ConfigSource.DEFAULT_CONFIG)]
    first_name = declared.synonyms[0].name
    return [*own, *dropwhile(lambda link: link.name != first_name, links[len(own) :])]


# AlterConfigs, IncrementalAlterConfigs


def alter_error(request: AlterConfigsRequest | None, version: int, error: ApiError) -> AlterConfigsResponse | None:
    if request is None:
        return None
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(error.code, error.message, each.resource_type, each.resource_name)
            for each in request.resources
        ]
    )


@handles(
    33,
    needs=[
        Need(Operation.ALTER_CONFIGS, ResourceType.TOPIC, when="the resource is a topic"),
        Need(Operation.ALTER_CONFIGS, ResourceType.GROUP, when="the resource is a group"),
        Need(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, when="the resource is anything else"),
    ],
    error_reply=alter_error,
)
async def handle_alter_configs(call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    refused = []
    allowed = []
    for resource in request.resources:
        try:
            _check_may(call, Operation.ALTER_CONFIGS, resource.resource_type, resource.resource_name)
            allowed.append(resource)
        except ApiError as error:
            refused.append(
                AlterConfigsResourceResponse(error.code, error.message, resource.resource_type, resource.resource_name)
            )
    request.resources = allowed
    broker = call.broker
    await check_tls_settings(request, broker.tls, node_id=broker.node_id, may=call.may)
    response = await broker.quorum.submit(lambda image: broker.controller.alter_configs(image, request), by=call)
    response.responses += refused
    return response


def incremental_error(
    request: IncrementalAlterConfigsRequest | None, version: int, error: ApiError
) -> IncrementalAlterConfigsResponse | None:
    if request is None:
        return None
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalResourceResponse(error.code, error.message, each.resource_type, each.resource_name)
            for each in request.resources
        ]
    )


@handles(
    44,
    needs=[
        Need(Operation.ALTER_CONFIGS, ResourceType.TOPIC, when="the resource is a topic"),
        Need(Operation.ALTER_CONFIGS, ResourceType.GROUP, when="the resource is a group"),
        Need(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, when="the resource is anything else"),
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="the resource is a broker's loggers and the listener is a controller's",
        ),
    ],
    error_reply=incremental_error,
)
async def handle_incremental_alter_configs(
    call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    refused = []
    allowed = []
    for resource in request.resources:
        try:
            _check_may(call, _altering(call, resource.resource_type), resource.resource_type, resource.resource_name)
            allowed.append(resource)
        except ApiError as error:
            refused.append(
                IncrementalResourceResponse(error.code, error.message, resource.resource_type, resource.resource_name)
            )
    request.resources = allowed
    broker = call.broker
    await check_tls_settings(request, broker.tls, node_id=broker.node_id, may=call.may)
    response = await broker.quorum.submit(
        lambda image: broker.controller.incremental_alter_configs(image, request), by=call
    )
    response.responses += refused
    return response


@handles(74, needs=[Need(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER)])
def handle_list_config_resources(call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if not call.may(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    return call.broker.controller.list_config_resources(call.broker.image, request, version=call.version)
