"""All APIs of Kafka: the handler that serves each, or the reason why it is not supported.

ApiVersions, dispatch, the protocol page and the tests read these lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.server.fetch.handler import handle_fetch
from millbeck.server.network.route import Route
from millbeck.server.requests.handlers.acls import handle_create_acls, handle_delete_acls, handle_describe_acls
from millbeck.server.requests.handlers.api_versions import handle_api_versions
from millbeck.server.requests.handlers.broker_requests import (
    handle_allocate_producer_ids,
    handle_alter_partition,
    handle_assign_replicas_to_dirs,
)
from millbeck.server.requests.handlers.brokers import (
    handle_broker_heartbeat,
    handle_broker_registration,
    handle_unregister_broker,
)
from millbeck.server.requests.handlers.client_quotas import (
    handle_alter_client_quotas,
    handle_describe_client_quotas,
)
from millbeck.server.requests.handlers.configs import (
    handle_alter_configs,
    handle_describe_configs,
    handle_incremental_alter_configs,
    handle_list_config_resources,
)
from millbeck.server.requests.handlers.controllers import handle_controller_registration
from millbeck.server.requests.handlers.delegation_tokens import (
    handle_create_delegation_token,
    handle_describe_delegation_token,
    handle_expire_delegation_token,
    handle_renew_delegation_token,
)
from millbeck.server.requests.handlers.describe_cluster import handle_describe_cluster
from millbeck.server.requests.handlers.describe_topic_partitions import handle_describe_topic_partitions
from millbeck.server.requests.handlers.elect_leaders import handle_elect_leaders
from millbeck.server.requests.handlers.envelope import handle_envelope
from millbeck.server.requests.handlers.find_coordinator import handle_find_coordinator
from millbeck.server.requests.handlers.groups_classic import (
    handle_delete_groups,
    handle_describe_groups,
    handle_heartbeat,
    handle_join_group,
    handle_leave_group,
    handle_list_groups,
    handle_sync_group,
)
from millbeck.server.requests.handlers.groups_consumer import (
    handle_consumer_group_describe,
    handle_consumer_group_heartbeat,
)
from millbeck.server.requests.handlers.groups_streams import (
    handle_streams_group_describe,
    handle_streams_group_heartbeat,
)
from millbeck.server.requests.handlers.init_producer_id import handle_init_producer_id
from millbeck.server.requests.handlers.list_offsets import handle_list_offsets
from millbeck.server.requests.handlers.log_dirs import handle_describe_log_dirs
from millbeck.server.requests.handlers.metadata import handle_metadata
from millbeck.server.requests.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from millbeck.server.requests.handlers.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from millbeck.server.requests.handlers.produce import handle_produce
from millbeck.server.requests.handlers.producers import handle_describe_producers
from millbeck.server.requests.handlers.quorum import handle_describe_quorum, handle_update_features
from millbeck.server.requests.handlers.raft import RAFT_ROUTES
from millbeck.server.requests.handlers.raft_voters import handle_add_raft_voter, handle_remove_raft_voter
from millbeck.server.requests.handlers.reassignments import (
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
)
from millbeck.server.requests.handlers.replica_log_dirs import handle_alter_replica_log_dirs
from millbeck.server.requests.handlers.sasl import handle_sasl_authenticate, handle_sasl_handshake
from millbeck.server.requests.handlers.scram_credentials import (
    handle_alter_user_scram_credentials,
    handle_describe_user_scram_credentials,
)
from millbeck.server.requests.handlers.share_fetch import handle_share_acknowledge, handle_share_fetch
from millbeck.server.requests.handlers.share_groups import handle_share_group_describe, handle_share_group_heartbeat
from millbeck.server.requests.handlers.share_offsets import (
    handle_alter_share_group_offsets,
    handle_delete_share_group_offsets,
    handle_describe_share_group_offsets,
)
from millbeck.server.requests.handlers.share_state import (
    handle_delete_share_group_state,
    handle_initialize_share_group_state,
    handle_read_share_group_state,
    handle_read_share_group_state_summary,
    handle_write_share_group_state,
)
from millbeck.server.requests.handlers.topics import (
    handle_create_partitions,
    handle_create_topics,
    handle_delete_records,
    handle_delete_topics,
)
from millbeck.server.requests.handlers.transactions import (
    handle_add_offsets_to_txn,
    handle_add_partitions_to_txn,
    handle_describe_transactions,
    handle_end_txn,
    handle_list_transactions,
)
from millbeck.server.requests.handlers.txn_markers import handle_write_txn_markers
from millbeck.server.requests.handlers.txn_offsets import handle_txn_offset_commit

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
    handle_sasl_handshake,
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
    handle_describe_acls,
    handle_create_acls,
    handle_delete_acls,
    handle_describe_configs,
    handle_alter_configs,
    handle_describe_log_dirs,
    handle_alter_replica_log_dirs,
    handle_sasl_authenticate,
    handle_create_partitions,
    handle_create_delegation_token,
    handle_renew_delegation_token,
    handle_expire_delegation_token,
    handle_describe_delegation_token,
    handle_delete_groups,
    handle_elect_leaders,
    handle_incremental_alter_configs,
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
    handle_offset_delete,
    handle_describe_client_quotas,
    handle_alter_client_quotas,
    handle_describe_user_scram_credentials,
    handle_alter_user_scram_credentials,
    handle_describe_quorum,
    handle_update_features,
    handle_describe_cluster,
    handle_describe_producers,
    handle_describe_transactions,
    handle_list_transactions,
    handle_unregister_broker,
    handle_streams_group_heartbeat,
    handle_streams_group_describe,
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
"""The APIs of client listeners."""

CONTROLLER_ROUTES: Final[tuple[Route, ...]] = (
    handle_sasl_handshake,
    handle_api_versions,
    handle_create_topics,
    handle_delete_topics,
    handle_describe_acls,
    handle_create_acls,
    handle_delete_acls,
    handle_describe_configs,
    handle_alter_configs,
    handle_sasl_authenticate,
    handle_create_partitions,
    handle_create_delegation_token,
    handle_renew_delegation_token,
    handle_expire_delegation_token,
    handle_describe_delegation_token,
    handle_elect_leaders,
    handle_incremental_alter_configs,
    handle_alter_partition_reassignments,
    handle_list_partition_reassignments,
    handle_alter_client_quotas,
    handle_describe_user_scram_credentials,
    handle_alter_user_scram_credentials,
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
"""The APIs of controller listeners: client requests to a controller, and requests between nodes."""

FORWARDED: Final = frozenset({19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81})
"""API keys that brokers accept from clients and forward to the active controller."""

_NO_TELEMETRY: Final = "client telemetry is not collected, and clients that see the API would send it"

NOT_SERVED: Final[Mapping[int, str]] = {
    71: _NO_TELEMETRY,
    72: _NO_TELEMETRY,
}
"""APIs of Kafka that are not advertised, each with the reason."""
