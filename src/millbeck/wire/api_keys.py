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
    "add_partitions_to_txn",
    "add_offsets_to_txn",
    "end_txn",
    "write_txn_markers",
    "txn_offset_commit",
    "describe_acls",
    "create_acls",
    "delete_acls",
    "describe_configs",
    "alter_configs",
    "alter_replica_log_dirs",
    "describe_log_dirs",
    "sasl_authenticate",
    "create_partitions",
    "create_delegation_token",
    "renew_delegation_token",
    "expire_delegation_token",
    "describe_delegation_token",
    "delete_groups",
    "elect_leaders",
    "incremental_alter_configs",
    "alter_partition_reassignments",
    "list_partition_reassignments",
    "offset_delete",
    "describe_client_quotas",
    "alter_client_quotas",
    "describe_user_scram_credentials",
    "alter_user_scram_credentials",
    "vote",
    "begin_quorum_epoch",
    "end_quorum_epoch",
    "describe_quorum",
    "alter_partition",
    "update_features",
    "envelope",
    "fetch_snapshot",
    "describe_cluster",
    "describe_producers",
    "broker_registration",
    "broker_heartbeat",
    "unregister_broker",
    "describe_transactions",
    "list_transactions",
    "allocate_producer_ids",
    "consumer_group_heartbeat",
    "consumer_group_describe",
    "controller_registration",
    "get_telemetry_subscriptions",
    "push_telemetry",
    "assign_replicas_to_dirs",
    "list_config_resources",
    "describe_topic_partitions",
    "share_group_heartbeat",
    "share_group_describe",
    "share_fetch",
    "share_acknowledge",
    "add_raft_voter",
    "remove_raft_voter",
    "update_raft_voter",
    "initialize_share_group_state",
    "read_share_group_state",
    "write_share_group_state",
    "delete_share_group_state",
    "read_share_group_state_summary",
    "streams_group_heartbeat",
    "streams_group_describe",
    "describe_share_group_offsets",
    "alter_share_group_offsets",
    "delete_share_group_offsets",
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
