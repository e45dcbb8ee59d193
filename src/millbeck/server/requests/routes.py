"""Every API there is: how it is served here, or why it is not.

ApiVersions, dispatch, the protocol page and the tests read these lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.server.dispatch import Route
from millbeck.server.handlers.allocate_producer_ids import handle_allocate_producer_ids
from millbeck.server.handlers.alter_partition import handle_alter_partition
from millbeck.server.handlers.api_versions import handle_api_versions
from millbeck.server.handlers.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
)
from millbeck.server.handlers.configs import (
    handle_alter_configs,
    handle_describe_configs,
    handle_incremental_alter_configs,
    handle_list_config_resources,
)
from millbeck.server.handlers.controllers import handle_controller_registration
from millbeck.server.handlers.describe_cluster import handle_describe_cluster
from millbeck.server.handlers.describe_topic_partitions import handle_describe_topic_partitions
from millbeck.server.handlers.elect_leaders import handle_elect_leaders
from millbeck.server.handlers.envelope import handle_envelope
from millbeck.server.handlers.fetch.handler import handle_fetch
from millbeck.server.handlers.find_coordinator import handle_find_coordinator
from millbeck.server.handlers.groups_classic import (
    handle_delete_groups,
    handle_describe_groups,
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from millbeck.server.handlers.groups_consumer import handle_consumer_group_describe, handle_consumer_group_heartbeat
from millbeck.server.handlers.init_producer_id import handle_init_producer_id
from millbeck.server.handlers.list_offsets import handle_list_offsets
from millbeck.server.handlers.log_dirs import handle_describe_log_dirs
from millbeck.server.handlers.metadata import handle_metadata
from millbeck.server.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from millbeck.server.handlers.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from millbeck.server.handlers.produce import handle_produce
from millbeck.server.handlers.producers import handle_describe_producers
from millbeck.server.handlers.quorum import handle_describe_quorum, handle_update_features
from millbeck.server.handlers.raft import RAFT_ROUTES
from millbeck.server.handlers.raft_voters import handle_add_raft_voter, handle_remove_raft_voter
from millbeck.server.handlers.reassignments import (
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
)
from millbeck.server.handlers.replica_directories import handle_assign_replicas_to_dirs
from millbeck.server.handlers.replica_log_dirs import handle_alter_replica_log_dirs
from millbeck.server.handlers.share_fetch import handle_share_acknowledge, handle_share_fetch
from millbeck.server.handlers.share_groups import handle_share_group_describe, handle_share_group_heartbeat
from millbeck.server.handlers.share_offsets import (
    handle_alter_share_group_offsets,
    handle_delete_share_group_offsets,
    handle_describe_share_group_offsets,
)
from millbeck.server.handlers.share_state import (
    handle_delete_share_group_state,
    handle_initialize_share_group_state,
    handle_read_share_group_state,
    handle_read_share_group_state_summary,
    handle_write_share_group_state,
)
from millbeck.server.handlers.topics import (
    handle_create_partitions,
    handle_create_topics,
    handle_delete_records,
    handle_delete_topics,
)
from millbeck.server.handlers.transactions import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
    handle_describe_transactions,
    handle_end_txn,
    handle_list_transactions,
)
from millbeck.server.handlers.txn_markers import handle_write_txn_markers
from millbeck.server.handlers.txn_offsets import handle_txn_offset_commit

ROUTES: Final[tuple[Route, ...]] = (
    handle_produce,
    handle_fetch,
    handle_list_offsets,
    handle_metadata,
    handle_offset_commit,
    handle_offset_fetch,
    handle_find_coordinator,
    handle_join_group,
    handle_heartbeat,
    handle_leave_group,
    handle_sync_group,
    handle_describe_groups,
    handle_list_groups,
    handle_api_versions,
    handle_create_topics,
    handle_delete_topics,
    handle_delete_records,
    handle_init_producer_id,
    handle_add_partitions_to_txn,
    handle_add_offsets_to_txn,
    handle_end_txn,
    handle_write_txn_markers,
    handle_txn_offset_commit,
    handle_offset_for_leader_epoch,
    handle_describe_configs,
    handle_alter_configs,
    handle_describe_log_dirs,
    handle_alter_replica_log_dirs,
    handle_create_partitions,
    handle_delete_groups,
    handle_elect_leaders,
    handle_incremental_alter_configs,
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
    handle_offset_delete,
    handle_describe_quorum,
    handle_update_features,
    handle_describe_cluster,
    handle_describe_producers,
    handle_describe_transactions,
    handle_list_transactions,
    handle_unregister_broker,
    handle_consumer_group_heartbeat,
    handle_consumer_group_describe,
    handle_list_config_resources,
    handle_describe_topic_partitions,
    handle_share_group_heartbeat,
    handle_share_group_describe,
    handle_share_fetch,
    handle_share_acknowledge,
    handle_add_raft_voter,
    handle_remove_raft_voter,
    handle_initialize_share_group_state,
    handle_read_share_group_state,
    handle_write_share_group_state,
    handle_delete_share_group_state,
    handle_read_share_group_state_summary,
    handle_describe_share_group_offsets,
    handle_alter_share_group_offsets,
    handle_delete_share_group_offsets,
)
"""What the listeners for clients serve."""

CONTROLLER_ROUTES: Final[tuple[Route, ...]] = (
    handle_api_versions,
    handle_create_topics,
    handle_delete_topics,
    handle_describe_configs,
    handle_alter_configs,
    handle_create_partitions,
    handle_elect_leaders,
    handle_incremental_alter_configs,
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
    handle_describe_quorum,
    handle_alter_partition,
    handle_update_features,
    handle_envelope,
    handle_describe_cluster,
    handle_broker_registration,
    handle_broker_heartbeat,
    handle_unregister_broker,
    handle_allocate_producer_ids,
    handle_controller_registration,
    handle_assign_replicas_to_dirs,
    handle_add_raft_voter,
    handle_remove_raft_voter,
    *RAFT_ROUTES,
)
"""What the controllers' listeners serve: what clients ask of a controller itself, and what nodes say to it."""

FORWARDED: Final = frozenset({19, 20, 33, 37, 43, 44, 45, 46, 55, 57, 64, 80, 81})
"""What brokers take from clients and the active controller does."""

_NO_SASL: Final = "clients are not authenticated by SASL in this release"
_NO_ACCESS_LISTS: Final = "there are no access control lists in this release"
_NO_TOKENS: Final = "there are no delegation tokens in this release"
_NO_QUOTAS: Final = "there are no client quotas in this release"
_NO_CREDENTIALS: Final = "there are no SCRAM credentials in this release"
_NO_TELEMETRY: Final = "clients that see it would send their metrics, which nobody collects"
_NO_STREAMS_GROUPS: Final = "there are no streams groups in this release"

NOT_SERVED: Final[Mapping[int, str]] = {
    17: _NO_SASL,
    29: _NO_ACCESS_LISTS,
    30: _NO_ACCESS_LISTS,
    31: _NO_ACCESS_LISTS,
    36: _NO_SASL,
    38: _NO_TOKENS,
    39: _NO_TOKENS,
    40: _NO_TOKENS,
    41: _NO_TOKENS,
    48: _NO_QUOTAS,
    49: _NO_QUOTAS,
    50: _NO_CREDENTIALS,
    51: _NO_CREDENTIALS,
    71: _NO_TELEMETRY,
    72: _NO_TELEMETRY,
    88: _NO_STREAMS_GROUPS,
    89: _NO_STREAMS_GROUPS,
}
"""APIs of Kafka that a client is not told of, each with the reason."""
