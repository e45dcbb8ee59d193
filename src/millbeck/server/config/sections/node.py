"""Who a node is and where it keeps things."""

from __future__ import annotations

from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Importance,
    Section,
    Update,
    all_of,
    at_least,
    distinct,
    each_of,
    non_empty,
    option,
)
from millbeck.kernel.units import LONG_MAX


class NodeOptions(Section):
    process_roles = option(
        "process.roles",
        LIST,
        ("broker", "controller"),
        valid=all_of(non_empty(), each_of("broker", "controller")),
        importance=Importance.HIGH,
        doc="The roles of this process: broker, controller or both, which is what it is when nothing is set.",
    )
    node_id = option(
        "node.id",
        INT,
        1,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The number of this node in the cluster. Kafka wants it set; here a node that is not told is number 1.",
    )
    broker_id = option(
        "broker.id",
        INT,
        -1,
        importance=Importance.HIGH,
        doc="The older name of node.id. Either may be set; if both are, they must be equal.",
    )
    broker_rack = option(
        "broker.rack",
        STRING,
        None,
        doc="The rack or zone of this node. Clients are told; replicas are placed apart by it once there are several.",
    )
    log_dir = option(
        "log.dir",
        LIST,
        ("/tmp/kafka-logs",),
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The directories of the logs when log.dirs is not set.",
    )
    log_dirs = option(
        "log.dirs",
        LIST,
        None,
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The directories in which logs are kept, one to a disk. A new partition goes where there are fewest.",
    )
    cordoned_log_dirs = option(
        "cordoned.log.dirs",
        LIST,
        (),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="Directories that get no new partitions; * means all of them. Not available in this release: it must be "
        "empty.",
    )
    log_dir_failure_timeout_ms = option(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long a broker may fail to tell its controller of a lost directory before it shuts down.",
    )
    controlled_shutdown_enable = option(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        doc="Hand leadership over before stopping. A broker that is alone has nobody to hand it to; stopping is "
        "orderly either way.",
    )
    server_max_startup_time_ms = option(
        "server.max.startup.time.ms",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        internal=True,
        doc="Accepted for compatibility: a start that cannot succeed fails at once instead of waiting.",
    )
    unstable_api_versions_enable = option(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        internal=True,
        doc="Whether API versions that Kafka has not released are offered: InitProducerId 6, for two-phase commit.",
    )
    unstable_feature_versions_enable = option(
        "unstable.feature.versions.enable",
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        internal=True,
        doc="Whether feature levels that Kafka has not released are offered, and the API versions they need: "
        "transaction.version 3 (two-phase commit) and share.version 2 (dead-letter topics).",
    )
