"""The tools of Apache Kafka that have shims, one entry each; no other module names them.

An entry has the millbeck command that corresponds to a tool, and the differences of their command lines. Flags with the
same name, and verbs given as flags (``--describe``), need no entry: millbeck's commands accept them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SERVER: Final = ("--bootstrap-server",)
SERVER_OR_CONTROLLER: Final = ("--bootstrap-server", "--bootstrap-controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The differences between the command line of one of Kafka's tools and that of a millbeck command."""

    command: tuple[str, ...]
    """The millbeck command, such as ``("perf", "produce")``."""
    verbs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Subcommands of the tool that are other millbeck commands, each with the whole command."""
    requires: tuple[tuple[str, ...], ...] = (SERVER,)
    """Groups of alternative flags; at least one flag of each group is required."""
    offline_verbs: tuple[str, ...] = ()
    """Verbs and flags for which ``requires`` does not apply, since they do not connect to a broker."""
    actions: tuple[str, ...] = ()
    """Flags of which exactly one must be given."""
    needed_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flags that an action needs, by the action's flag."""
    alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flags that cannot be combined with others, by flag."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Kafka's flags, with millbeck's equivalent flag."""
    as_setting: Mapping[str, str] = field(default_factory=dict)
    """Flags whose value is that of a client setting."""
    several: tuple[str, ...] = ()
    """Flags that take all words up to the next flag, as ``--producer-props acks=all linger.ms=5`` does."""
    without_effect: Mapping[str, int] = field(default_factory=dict)
    """Flags that are accepted but have no effect here, with the number of their values."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Flags of Kafka's tool that are refused, each with the alternative."""
    always: tuple[str, ...] = ()
    """Arguments added to every command line."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Flags with the values that Kafka's tool uses when they are not given."""
    help_exit_code: int = 1
    """The exit code of ``--help``: 1 if Kafka's tool prints its help as an error."""
    failure_exit_code: int = 1
    """The exit code of a failed request: 0 if Kafka's tool prints the error and exits with 0."""


_PRODUCER_SETTINGS: Final = {
    "--batch-size": "batch.size",
    "--max-partition-memory-bytes": "batch.size",
    "--max-block-ms": "max.block.ms",
    "--max-memory-bytes": "buffer.memory",
    "--message-send-max-retries": "retries",
    "--metadata-expiry-ms": "metadata.max.age.ms",
    "--request-timeout-ms": "request.timeout.ms",
    "--retry-backoff-ms": "retry.backoff.ms",
    "--socket-buffer-size": "send.buffer.bytes",
    "--timeout": "linger.ms",
}
_CONTROLLERS_ASKED_BY_BROKERS: Final = {
    "--bootstrap-controller": "use --bootstrap-server: brokers forward the request to the controllers"
}
_LIST_ACTIONS: Final = ("--list", "--describe", "--create", "--alter", "--delete")
_GROUP_ACTIONS: Final = ("--list", "--describe", "--delete", "--reset-offsets", "--delete-offsets")

TOOLS: Final[Mapping[str, Tool]] = {
    "kafka-acls": Tool(
        command=("acl",),
        requires=(SERVER_OR_CONTROLLER,),
        actions=("--add", "--list", "--remove"),
        missing=_CONTROLLERS_ASKED_BY_BROKERS,
    ),
    "kafka-broker-api-versions": Tool(command=("cluster", "api-versions")),
    "kafka-cluster": Tool(
        command=("cluster",),
        requires=(("--bootstrap-server", "-b", "--bootstrap-controller", "-C"),),
        renamed={"-c": "--command-config", "--config": "--command-config"},
        missing={**_CONTROLLERS_ASKED_BY_BROKERS, "-C": _CONTROLLERS_ASKED_BY_BROKERS["--bootstrap-controller"]},
    ),
    "kafka-configs": Tool(
        command=("config",),
        requires=(SERVER_OR_CONTROLLER,),
        actions=("--describe", "--alter"),
        missing=_CONTROLLERS_ASKED_BY_BROKERS,
    ),
    "kafka-console-consumer": Tool(
        command=("consume",),
        without_effect={"--skip-message-on-error": 0},
        missing={
            "--enable-systest-events": "it exists only for Kafka's own tests",
            "--formatter-config": "give its properties with --formatter-property",
        },
        always=("--quiet",),
    ),
    "kafka-console-producer": Tool(
        command=("produce",),
        as_setting=_PRODUCER_SETTINGS,
        missing={
            "--line-reader": "it names a Java class: see --reader-property and `millbeck produce --help`",
            "--reader-config": "give its properties with --reader-property",
        },
    ),
    "kafka-console-share-consumer": Tool(
        command=("consume",),
        requires=(SERVER, ("--topic",)),
        renamed={"--consumer-config": "--command-config"},
        without_effect={"--reject-message-on-error": 0},
        missing={
            "--enable-systest-events": "it exists only for Kafka's own tests",
            "--formatter-config": "give its properties with --formatter-property",
            **dict.fromkeys(("--reject", "--release"), "each record is accepted after it was printed"),
        },
        always=("--share", "--quiet"),
        defaults={"--group": "console-share-consumer"},
    ),
    "kafka-consumer-groups": Tool(
        command=("group",),
        verbs={"--validate-regex": ("group", "validate-regex")},
        offline_verbs=("--validate-regex",),
        actions=(*_GROUP_ACTIONS, "--validate-regex"),
        without_effect={"--timeout": 1},
        failure_exit_code=0,
    ),
    "kafka-consumer-perf-test": Tool(
        command=("perf", "consume"),
        requires=(SERVER, ("--num-records", "--messages")),
        renamed={"--hide-header": "--no-headers"},
        as_setting={"--fetch-size": "max.partition.fetch.bytes", "--socket-buffer-size": "receive.buffer.bytes"},
        without_effect={"--print-metrics": 0, "--group": 1, "--reporting-interval": 1, "--show-detailed-stats": 0},
        missing={
            "--include": "name one topic with --topic",
            "--date-format": "the times are printed as yyyy-MM-dd HH:mm:ss:SSS",
        },
    ),
    "kafka-delegation-tokens": Tool(
        command=("token",),
        requires=(SERVER, ("--command-config",)),
        actions=("--create", "--renew", "--expire", "--describe"),
        needed_by={
            "--create": ("--max-life-time-period",),
            "--renew": ("--hmac", "--renew-time-period"),
            "--expire": ("--hmac", "--expiry-time-period"),
        },
    ),
    "kafka-delete-records": Tool(command=("topic", "delete-records"), requires=(SERVER, ("--offset-json-file",))),
    "kafka-dump-log": Tool(
        command=("dump-log",),
        requires=(("--files",),),
        missing=dict.fromkeys(
            ("--transaction-log-decoder", "--share-group-state-decoder", "--remote-log-metadata-decoder"),
            "the decoders here are --offsets-decoder and --cluster-metadata-decoder",
        )
        | {"--skip-record-metadata": "filter the output lines instead, or use millbeck dump-log --output json"},
    ),
    "kafka-features": Tool(
        command=("feature",),
        requires=(SERVER_OR_CONTROLLER,),
        offline_verbs=("version-mapping", "feature-dependencies"),
        missing=_CONTROLLERS_ASKED_BY_BROKERS,
        help_exit_code=0,
    ),
    "kafka-get-offsets": Tool(command=("topic", "offsets")),
    "kafka-groups": Tool(
        command=("group",),
        actions=("--list",),
        alone={
            "--consumer": ("--group-type", "--protocol", "--share", "--streams"),
            "--share": ("--group-type", "--protocol", "--streams"),
            "--streams": ("--group-type", "--protocol"),
        },
        renamed={"--group-type": "--type", "--share": "--type=share", "--streams": "--type=streams"},
    ),
    "kafka-leader-election": Tool(
        command=("elect-leaders",),
        requires=(SERVER, ("--election-type",)),
        renamed={"--admin.config": "--command-config"},
    ),
    "kafka-log-dirs": Tool(command=("log-dirs",), requires=(SERVER, ("--describe",))),
    "kafka-metadata-quorum": Tool(
        command=("quorum",),
        requires=(SERVER_OR_CONTROLLER,),
        missing=_CONTROLLERS_ASKED_BY_BROKERS,
        help_exit_code=0,
    ),
    "kafka-producer-perf-test": Tool(
        command=("perf", "produce"),
        requires=(
            ("--topic",),
            ("--num-records",),
            ("--throughput",),
            ("--record-size", "--payload-file", "--payload-monotonic"),
        ),
        renamed={"--producer-props": "--command-property"},
        several=("--producer-props", "--command-property"),
        without_effect={"--print-metrics": 0, "--reporting-interval": 1},
        missing={
            "--warmup-records": "use a separate run for warm-up records",
            "--payload-delimiter": "every line of --payload-file is a payload",
            "--transactional-id": "`millbeck perf produce` has no transactions",
            "--transaction-duration-ms": "`millbeck perf produce` has no transactions",
        },
    ),
    "kafka-reassign-partitions": Tool(
        command=("reassign",),
        requires=(SERVER_OR_CONTROLLER,),
        actions=("--generate", "--execute", "--verify", "--list", "--cancel"),
        without_effect={"--timeout": 1},
        missing=_CONTROLLERS_ASKED_BY_BROKERS,
    ),
    "kafka-server-start": Tool(
        command=("server",),
        requires=(),
        missing={"-daemon": "run it as a service (docs/deployment.md), or in the background with nohup and &"},
    ),
    "kafka-share-groups": Tool(
        command=("share",), actions=_GROUP_ACTIONS, without_effect={"--timeout": 1}, failure_exit_code=0
    ),
    "kafka-storage": Tool(
        command=("storage",),
        verbs={
            "version-mapping": ("feature", "version-mapping"),
            "feature-dependencies": ("feature", "feature-dependencies"),
        },
        requires=(),
        help_exit_code=0,
    ),
    "kafka-streams-groups": Tool(
        command=("group",),
        actions=_GROUP_ACTIONS,
        renamed={"--input-topic": "--topic", "--all-input-topics": "--all-topics"},
        without_effect={"--timeout": 1},
        missing=dict.fromkeys(
            ("--delete", "--delete-internal-topic", "--delete-all-internal-topics"),
            "`millbeck group delete` deletes the group, `millbeck topic delete` its internal topics",
        ),
    ),
    "kafka-topics": Tool(
        command=("topic",),
        actions=_LIST_ACTIONS,
        without_effect={"--partition-size-limit-per-response": 1},
        missing={"--delete-config": "use kafka-configs --alter --delete-config"},
    ),
    "kafka-transactions": Tool(
        command=("txn",),
        verbs={"forceTerminateTransaction": ("txn", "terminate")},
        renamed={"--transactionalId": "--transactional-id"},
    ),
}
