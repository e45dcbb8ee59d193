"""Options of a node: its id, roles and directories."""

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
        doc="The roles of this node: broker, controller or both. Not set: both.",
    )
    node_id = option(
        "node.id",
        INT,
        1,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The id of this node in the cluster. Kafka requires it; here the default is 1.",
    )
    broker_id = option(
        "broker.id",
        INT,
        -1,
        importance=Importance.HIGH,
        doc="The older name of node.id. If both are set, they must be equal.",
    )
    broker_rack = option(
        "broker.rack",
        STRING,
        None,
        doc="The rack or zone of this node. Sent to clients, and used to spread replicas over racks.",
    )
    log_dir = option(
        "log.dir",
        LIST,
        ("/tmp/kafka-logs",),
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The log directories if log.dirs is not set.",
    )
    log_dirs = option(
        "log.dirs",
        LIST,
        None,
        valid=all_of(non_empty(), distinct()),
        importance=Importance.HIGH,
        doc="The log directories, usually one per disk. A new partition is placed in the directory with the fewest "
        "partitions.",
    )
    cordoned_log_dirs = option(
        "cordoned.log.dirs",
        LIST,
        (),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="Cordoned log directories, which get no new partitions; * means all. Not available in this release: it "
        "must be empty.",
    )
    log_dir_failure_timeout_ms = option(
        "log.dir.failure.timeout.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How long a broker tries to report a failed log directory to the controller before it shuts down.",
    )
    controlled_shutdown_enable = option(
        "controlled.shutdown.enable",
        BOOLEAN,
        True,
        doc="Whether a broker moves its leaderships to other brokers before it stops. Logs are closed cleanly either "
        "way.",
    )
    server_max_startup_time_ms = option(
        "server.max.startup.time.ms",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        internal=True,
        doc="How long a start may take. Accepted for compatibility: a start that cannot succeed fails at once.",
    )
    unstable_api_versions_enable = option(
        "unstable.api.versions.enable",
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        internal=True,
        doc="Whether unreleased API versions are enabled: InitProducerId 6, for two-phase commit.",
    )
    unstable_feature_versions_enable = option(
        "unstable.feature.versions.enable",
        BOOLEAN,
        False,
        importance=Importance.HIGH,
        internal=True,
        doc="Whether unreleased feature versions are enabled, with the API versions they need: transaction.version 3 "
        "(two-phase commit) and share.version 2 (dead-letter topics).",
    )
