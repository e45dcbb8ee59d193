"""Checks of settings against each other, as in Kafka when a broker starts or a config changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers
from millbeck.kernel.units import MIB
from millbeck.server.config.broker_options import BROKER_OPTIONS
from millbeck.storage.config import LogConfig, check_log_config


def check_consistent(texts: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` for broker settings that contradict each other."""
    _check_topic_defaults(LogConfig.resolve(ConfigLayers(static=texts)))
    _check_limits(texts)
    _check_replication(texts)
    _check_membership(texts)


def _check_topic_defaults(config: LogConfig) -> None:
    """Check the broker-wide defaults of topic configs."""
    if config.segment_ms < 1:
        raise InvalidConfig("log.roll.ms must be at least 1")
    if config.segment_jitter_ms < 0:
        raise InvalidConfig("log.roll.jitter.ms must be at least 0")
    if config.retention_ms == 0:
        raise InvalidConfig("log.retention.ms must be at least 1, or negative to keep records forever")
    check_log_config(config)


def _check_limits(texts: Mapping[str, str]) -> None:
    queued_bytes = _value(texts, "queued.max.request.bytes")
    request_bytes = _value(texts, "socket.request.max.bytes")
    if 0 < queued_bytes < request_bytes:
        raise InvalidConfig(
            f"queued.max.request.bytes ({queued_bytes}) is less than socket.request.max.bytes ({request_bytes})"
        )
    if _value(texts, "max.connections.per.ip") == 0 and not _value(texts, "max.connections.per.ip.overrides"):
        raise InvalidConfig("max.connections.per.ip is 0, which requires max.connections.per.ip.overrides")
    buffer_bytes = _value(texts, "log.cleaner.dedupe.buffer.size")
    threads = _value(texts, "log.cleaner.threads")
    if threads and buffer_bytes // threads <= MIB:
        raise InvalidConfig("log.cleaner.dedupe.buffer.size must be more than 1 MiB per thread of log.cleaner.threads")


def _check_replication(texts: Mapping[str, str]) -> None:
    wait_ms = _value(texts, "replica.fetch.wait.max.ms")
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if wait_ms > _value(texts, name):
            raise InvalidConfig(f"replica.fetch.wait.max.ms ({wait_ms}) is more than {name} ({_value(texts, name)})")


def _check_membership(texts: Mapping[str, str]) -> None:
    """Check the heartbeat interval: one lost heartbeat must not fence a broker."""
    heartbeat_ms = _value(texts, "broker.heartbeat.interval.ms")
    session_ms = _value(texts, "broker.session.timeout.ms")
    if heartbeat_ms * 2 > session_ms:
        raise InvalidConfig(
            f"broker.heartbeat.interval.ms ({heartbeat_ms}) is more than half of "
            f"broker.session.timeout.ms ({session_ms})"
        )


def _value(texts: Mapping[str, str], name: str) -> Any:
    declared = BROKER_OPTIONS.by_name[name]
    text = texts.get(name)
    return declared.default if text is None else declared.parse(text)
