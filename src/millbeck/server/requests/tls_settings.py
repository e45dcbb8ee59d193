"""Check a broker's new TLS settings before they are stored; only this broker can, because they name files on its host.

Clients send changes of a broker's own configuration to that broker, which forwards them to the controller. An unusable
change is refused here, as by Kafka's brokers. Authorization is checked first, so that an unauthorized client does not
learn which files exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.metadata.image import ResourceType as ConfigType
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.node_tls import NodeTls
from millbeck.wire.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest

_SET: Final = 0
_DELETE: Final = 1
_TLS: Final = ".ssl."


async def check_tls_settings(
    request: object, tls: NodeTls, *, node_id: int, may: Callable[[Operation, ResourceType, str], bool]
) -> None:
    """Raise `InvalidRequest` if the request has TLS settings for this broker that it could not use; ``may`` checks the
    client's authorization.
    """
    if not isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest) or not tls.is_used:
        return
    for resource in request.resources:
        if resource.resource_type != ConfigType.BROKER or resource.resource_name != str(node_id):
            continue
        if not any(_TLS in config.name for config in resource.configs):
            continue
        if not may(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
            continue
        # AlterConfigs replaces all configs, IncrementalAlterConfigs changes the existing ones.
        dynamic = dict(tls.dynamic) if isinstance(request, IncrementalAlterConfigsRequest) else {}
        for config in resource.configs:
            operation = getattr(config, "config_operation", _SET)
            if operation == _DELETE or config.value is None:
                dynamic.pop(config.name, None)
            elif operation == _SET:
                dynamic[config.name] = config.value
        try:
            await tls.check(dynamic)
        except InvalidConfig as error:
            raise InvalidRequest(f"broker {resource.resource_name} cannot use this: {error.message}") from error
