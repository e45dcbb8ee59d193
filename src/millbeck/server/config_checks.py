"""Settings that this release refuses by name, and values that contradict each other."""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.names import is_internal_topic
from millbeck.kernel.options import Layers
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.storage.config import COMPACT, LogConfig, check_log_config


def check_supported(resource: ConfigResource, options: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` for topic settings that would be stored and not honoured."""
    if resource.type != ResourceType.TOPIC:
        return
    config = LogConfig.resolve(Layers(overrides=options))
    if COMPACT in config.cleanup_policy and not is_internal_topic(resource.name):
        raise InvalidConfig("cleanup.policy: compaction is not available in this release, use delete")
    if config.remote_storage_enable:
        raise InvalidConfig("remote.storage.enable: tiered storage is not available in this release")
    for name in (
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "local.retention.ms",
        "local.retention.bytes",
    ):
        if name in options:
            raise InvalidConfig(f"{name}: tiered storage is not available in this release")
    check_log_config(config)
