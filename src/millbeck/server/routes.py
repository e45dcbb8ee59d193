"""Every API this node serves. ApiVersions, dispatch, the protocol page and the tests read this list."""

from __future__ import annotations

from typing import Final

from millbeck.server.dispatch import Route
from millbeck.server.handlers.api_versions import handle_api_versions
from millbeck.server.handlers.configs import (
    handle_alter_configs,
    handle_describe_configs,
    handle_incremental_alter_configs,
    handle_list_config_resources,
)
from millbeck.server.handlers.describe_cluster import handle_describe_cluster
from millbeck.server.handlers.describe_topic_partitions import handle_describe_topic_partitions
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
from millbeck.server.handlers.init_producer_id import handle_init_producer_id
from millbeck.server.handlers.list_offsets import handle_list_offsets
from millbeck.server.handlers.log_dirs import handle_describe_log_dirs
from millbeck.server.handlers.metadata import handle_metadata
from millbeck.server.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from millbeck.server.handlers.offsets import handle_offset_commit, handle_offset_delete, handle_offset_fetch
from millbeck.server.handlers.produce import handle_produce
from millbeck.server.handlers.producers import handle_describe_producers
from millbeck.server.handlers.quorum import handle_describe_quorum, handle_update_features
from millbeck.server.handlers.topics import (
    handle_create_partitions,
    handle_create_topics,
    handle_delete_records,
    handle_delete_topics,
)

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
    handle_offset_for_leader_epoch,
    handle_describe_configs,
    handle_alter_configs,
    handle_describe_log_dirs,
    handle_create_partitions,
    handle_delete_groups,
    handle_incremental_alter_configs,
    handle_offset_delete,
    handle_describe_quorum,
    handle_update_features,
    handle_describe_cluster,
    handle_describe_producers,
    handle_list_config_resources,
    handle_describe_topic_partitions,
)
