"""aiokafka's keyword arguments as Kafka's settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from millbeck.client.compat.aiokafka.errors import KafkaConfigurationError
from millbeck.client.config import Value

missing: Final = object()
"""The default of arguments whose value depends on others."""

COMMON: Final[dict[str, Any]] = {
    "loop": None,
    "bootstrap_servers": "localhost",
    "client_id": None,
    "metadata_max_age_ms": 300_000,
    "request_timeout_ms": 40_000,
    "retry_backoff_ms": 100,
    "api_version": None,
    "security_protocol": "PLAINTEXT",
    "ssl_context": None,
    "connections_max_idle_ms": 540_000,
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": None,
    "sasl_plain_password": None,
    "sasl_kerberos_service_name": "kafka",
    "sasl_kerberos_domain_name": None,
    "sasl_oauth_token_provider": None,
}
"""The arguments that all clients have, with aiokafka's defaults; the event loop and API version have no effect."""

_SAME: Final = ("metadata_max_age_ms", "retry_backoff_ms", "security_protocol", "connections_max_idle_ms")
_DEFAULT_PORT: Final = 9092


def arguments(of: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments and the defaults of others; raises TypeError for unknown ones."""
    for name in given:
        if name not in defaults:
            raise TypeError(f"{of}.__init__() got an unexpected keyword argument {name!r}")
    return {**defaults, **given}


def common_settings(options: Mapping[str, Any]) -> dict[str, Value]:
    """The settings that all clients have."""
    settings: dict[str, Value] = {name.replace("_", "."): options[name] for name in _SAME}
    settings["bootstrap.servers"] = ",".join(_addresses(options["bootstrap_servers"]))
    settings["request.timeout.ms"] = options["request_timeout_ms"]
    settings["default.api.timeout.ms"] = options["request_timeout_ms"]
    settings["retry.backoff.max.ms"] = max(1000, options["retry_backoff_ms"])
    if options["client_id"] is not None:
        settings["client.id"] = options["client_id"]
    if options["security_protocol"].startswith("SASL"):
        settings |= _sasl_settings(options)
    if options["security_protocol"].endswith("SSL") and options["ssl_context"] is not None:
        from millbeck.client.compat.aiokafka.tls_contexts import settings_of

        settings |= settings_of(options["ssl_context"])
    return settings


def _sasl_settings(options: Mapping[str, Any]) -> dict[str, Value]:
    mechanism = options["sasl_mechanism"]
    if options["sasl_oauth_token_provider"] is not None:
        raise KafkaConfigurationError(
            "sasl_oauth_token_provider is not supported: use millbeck.client with its sasl.oauthbearer settings"
        )
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        raise KafkaConfigurationError(f"sasl_mechanism {mechanism} is not supported")
    return {
        "sasl.mechanism": mechanism,
        "sasl.username": options["sasl_plain_username"],
        "sasl.password": options["sasl_plain_password"],
    }


def _addresses(servers: str | Iterable[str]) -> list[str]:
    entries = servers.split(",") if isinstance(servers, str) else list(servers)
    return [entry.strip() if _has_port(entry.strip()) else f"{entry.strip()}:{_DEFAULT_PORT}" for entry in entries]


def _has_port(entry: str) -> bool:
    return "]:" in entry if entry.startswith("[") else ":" in entry
