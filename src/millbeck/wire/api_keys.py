"""The table of APIs, derived from the declared requests and responses.

A module of declarations is imported when its API is first looked up: a node serves fewer than there are, and a command
sends three or four. Only the keys are written down here, and compared with the declaration when it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from millbeck.wire.schema import Kind, schema_of

NEVER_FLEXIBLE = 32768
"""`Api.flexible_from` of an API that keeps the old encoding in every version."""

API_VERSIONS = 18
"""The one API whose responses keep header version 0, so that a client that guessed too high can read the answer."""

_MODULES = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    29: "describe_acls",
    30: "create_acls",
    31: "delete_acls",
    32: "describe_configs",
    33: "alter_configs",
    34: "alter_replica_log_dirs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    38: "create_delegation_token",
    39: "renew_delegation_token",
    40: "expire_delegation_token",
    41: "describe_delegation_token",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    48: "describe_client_quotas",
    49: "alter_client_quotas",
    50: "describe_user_scram_credentials",
    51: "alter_user_scram_credentials",
    52: "vote",
    53: "begin_quorum_epoch",
    54: "end_quorum_epoch",
    55: "describe_quorum",
    56: "alter_partition",
    57: "update_features",
    58: "envelope",
    59: "fetch_snapshot",
    60: "describe_cluster",
    61: "describe_producers",
    62: "broker_registration",
    63: "broker_heartbeat",
    64: "unregister_broker",
    65: "describe_transactions",
    66: "list_transactions",
    67: "allocate_producer_ids",
    68: "consumer_group_heartbeat",
    69: "consumer_group_describe",
    70: "controller_registration",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    73: "assign_replicas_to_dirs",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    76: "share_group_heartbeat",
    77: "share_group_describe",
    78: "share_fetch",
    79: "share_acknowledge",
    80: "add_raft_voter",
    81: "remove_raft_voter",
    82: "update_raft_voter",
    83: "initialize_share_group_state",
    84: "read_share_group_state",
    85: "write_share_group_state",
    86: "delete_share_group_state",
    87: "read_share_group_state_summary",
    88: "streams_group_heartbeat",
    89: "streams_group_describe",
    90: "describe_share_group_offsets",
    91: "alter_share_group_offsets",
    92: "delete_share_group_offsets",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    key: int
    name: str
    request: type[Any]
    response: type[Any]
    min_version: int
    max_version: int
    flexible_from: int


class _Apis(Mapping[int, Api]):
    """All declared APIs by key, in order, each read when it is asked for."""

    def __init__(self) -> None:
        self._read: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._read.get(key)
        if api is None:
            api = self._read[key] = _read_module(key, _MODULES[key])
        return api

    def __contains__(self, key: object) -> bool:
        return key in _MODULES

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


def _read_module(key: int, module_name: str) -> Api:
    module = import_module(f"millbeck.wire.messages.{module_name}")
    declared: dict[Kind, type[Any]] = {}
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            declared[schema_of(value).kind] = value
    request, response = declared[Kind.REQUEST], declared[Kind.RESPONSE]
    schema = schema_of(request)
    assert schema.api_key == key, f"{schema.name} is declared with key {schema.api_key} and listed with {key}"
    assert schema.versions == schema_of(response).versions, f"{schema.name} and its response differ in versions"
    return Api(
        key=key,
        name=schema.name.removesuffix("Request"),
        request=request,
        response=response,
        min_version=schema.versions.low,
        max_version=schema.versions.high,
        flexible_from=NEVER_FLEXIBLE if schema.flexible.is_empty else schema.flexible.low,
    )


APIS: Mapping[int, Api] = _Apis()
"""Every API that is declared. What a node serves is a matter of its handlers."""
