"""The table of APIs, derived from the declared requests and responses."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from millbeck.wire.schema import Kind, schema_of

NEVER_FLEXIBLE = 32768
"""`Api.flexible_from` of an API that keeps the old encoding in every version."""

API_VERSIONS = 18
"""The one API whose responses keep header version 0, so that a client that guessed too high can read the answer."""

_MODULES = (
    "produce",
    "fetch",
    "list_offsets",
    "metadata",
    "offset_commit",
    "offset_fetch",
    "find_coordinator",
    "join_group",
    "heartbeat",
    "leave_group",
    "sync_group",
    "describe_groups",
    "list_groups",
    "sasl_handshake",
    "api_versions",
    "create_topics",
    "delete_topics",
    "delete_records",
    "init_producer_id",
    "offset_for_leader_epoch",
    "describe_configs",
    "alter_configs",
    "describe_log_dirs",
    "sasl_authenticate",
    "create_partitions",
    "delete_groups",
    "incremental_alter_configs",
    "offset_delete",
    "describe_quorum",
    "update_features",
    "describe_cluster",
    "describe_producers",
    "list_config_resources",
    "describe_topic_partitions",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    key: int
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int
    flexible_from: int


def _read_module(module_name: str) -> Api:
    module = import_module(f"millbeck.wire.messages.{module_name}")
    declared: dict[Kind, type[Any]] = {}
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            declared[schema_of(value).kind] = value
    request, response = declared[Kind.REQUEST], declared[Kind.RESPONSE]
    schema = schema_of(request)
    assert schema.api_key is not None
    assert schema.versions == schema_of(response).versions, f"{schema.name} and its response differ in versions"
    return Api(
        key=schema.api_key,
        name=schema.name.removesuffix("Request"),
        request=request,
        response=response,
        min_version=schema.versions.low,
        max_version=schema.versions.high,
        flexible_from=NEVER_FLEXIBLE if schema.flexible.is_empty else schema.flexible.low,
    )


APIS: dict[int, Api] = {api.key: api for api in sorted(map(_read_module, _MODULES), key=lambda api: api.key)}
"""Every API that is declared, by key, in order. What a node serves is a matter of its handlers."""
