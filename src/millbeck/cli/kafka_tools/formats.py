"""The output formats of Kafka's tools that scripts parse: tables, sentences and JSON.

A command calls these functions when `millbeck.cli.verbs.kafka_tool` names a tool; the module is imported only then. The
rows are the same as in the command's own tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.output import printable

if TYPE_CHECKING:
    from millbeck.client.admin.outcomes import Outcomes
    from millbeck.client.admin.results import ConfigEntry, GroupListing, LogDirDescription
    from millbeck.kernel.ids import TopicPartition

NAME_COLLISION: Final = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To "
    "avoid issues it is best to use either, but not both."
)
_ENTITIES: Final = {
    "topics": "topic",
    "brokers": "broker",
    "groups": "group",
    "client-metrics": "client-metric",
    "broker-loggers": "broker-logger",
    "users": "user",
    "clients": "client",
    "ips": "ip",
}
_SOURCES: Final = {8: "DYNAMIC_GROUP_CONFIG", 7: "DYNAMIC_CLIENT_METRICS_CONFIG"}
"""Kafka's names of config sources that differ from millbeck's."""


def print_table(rows: Iterable[Mapping[str, object]], columns: Mapping[str, str], *, always: bool = True) -> None:
    """Print a table. ``columns`` has the field of the rows for each heading; ``-`` means an absent value.

    The headings are printed even without rows, unless ``always`` is false.
    """
    cells = [[_cell(row.get(name)) for name in columns.values()] for row in rows]
    if not cells and not always:
        return
    lines = [list(columns), *cells]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        click.echo(" ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)))


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return printable(",".join(map(str, value))) or "-"
    return "-" if value is None else printable(str(value))


# kafka-configs


def config_lines(kind: str, name: str, entries: Sequence[ConfigEntry], *, every: bool) -> list[str]:
    """The settings of one entity, as ``kafka-configs --describe`` prints them."""
    noun = _ENTITIES[kind]
    of_one = f"{'All' if every else 'Dynamic'} configs for {noun} {name} are:"
    title = of_one if name else f"Default configs for {kind} in the cluster are:"
    return [title, *(f"  {_config_line(entry)}" for entry in sorted(entries, key=lambda each: each.name))]


def _config_line(entry: ConfigEntry) -> str:
    from millbeck.kernel.option_layers import ConfigSource

    synonyms = ", ".join(
        f"{_SOURCES.get(each.source) or ConfigSource(each.source).name}:{each.name}={_config_value(each.value)}"
        for each in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"{entry.name}={_config_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _config_value(value: str | None) -> str:
    return "null" if value is None else value


def config_changed(kind: str, name: str | None) -> str:
    if not name:
        return f"Completed updating default config for {kind} in the cluster."
    return f"Completed updating config for {_ENTITIES[kind]} {name}."


# kafka-consumer-groups and kafka-share-groups

GROUP_OFFSETS: Final = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "CURRENT-OFFSET": "current_offset",
    "LOG-END-OFFSET": "log_end_offset",
    "LAG": "lag",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
}
GROUP_OFFSETS_VERBOSE: Final = {
    **{title: name for title, name in GROUP_OFFSETS.items() if title in ("GROUP", "TOPIC", "PARTITION")},
    "LEADER-EPOCH": "leader_epoch",
    **{title: name for title, name in GROUP_OFFSETS.items() if title not in ("GROUP", "TOPIC", "PARTITION")},
}
GROUP_MEMBERS: Final = {
    "GROUP": "group",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
    "#PARTITIONS": "partitions",
}
GROUP_MEMBERS_VERBOSE: Final = {
    **GROUP_MEMBERS,
    "CURRENT-EPOCH": "current_epoch",
    "CURRENT-ASSIGNMENT": "assignment",
    "TARGET-EPOCH": "target_epoch",
    "TARGET-ASSIGNMENT": "target_assignment",
}
GROUP_STATE: Final = {
    "GROUP": "group",
    "COORDINATOR (ID)": "coordinator",
    "ASSIGNMENT-STRATEGY": "assignment_strategy",
    "STATE": "state",
    "#MEMBERS": "members",
}
GROUP_STATE_VERBOSE: Final = {
    "GROUP": "group",
    "COORDINATOR (ID)": "coordinator",
    "ASSIGNMENT-STRATEGY": "assignment_strategy",
    "STATE": "state",
    "GROUP-EPOCH": "group_epoch",
    "TARGET-ASSIGNMENT-EPOCH": "target_assignment_epoch",
    "#MEMBERS": "members",
}
SHARE_OFFSETS: Final = {
    "GROUP": "group",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "START-OFFSET": "start_offset",
    "LAG": "lag",
}
SHARE_MEMBERS: Final = {
    "GROUP": "group",
    "CONSUMER-ID": "consumer_id",
    "HOST": "host",
    "CLIENT-ID": "client_id",
    "#PARTITIONS": "partitions",
    "ASSIGNMENT": "assignment",
}
SHARE_STATE: Final = {
    "GROUP": "group",
    "COORDINATOR (ID)": "coordinator",
    "STATE": "state",
    "#MEMBERS": "members",
}
NEW_OFFSETS: Final = {"GROUP": "group", "TOPIC": "topic", "PARTITION": "partition", "NEW-OFFSET": "new_offset"}


def print_groups(rows: Iterable[Mapping[str, object]], *, with_type: bool, with_state: bool) -> None:
    columns = {"GROUP": "group", "TYPE": "type", "STATE": "state"}
    if not with_type:
        del columns["TYPE"]
    if not with_state:
        del columns["STATE"]
    print_table(rows, columns)


def print_all_groups(groups: Iterable[GroupListing]) -> None:
    """The table of kafka-groups."""
    rows = [{"group": each.group_id, "type": each.type.capitalize(), "protocol": each.protocol_type} for each in groups]
    print_table(rows, {"GROUP": "group", "TYPE": "type", "PROTOCOL": "protocol"})


def assignment_text(partitions: Iterable[TopicPartition]) -> str | None:
    """``orders:0,1;payments:3``, or None for nothing."""
    by_topic: dict[str, list[int]] = {}
    for each in sorted(partitions):
        by_topic.setdefault(each.topic, []).append(each.partition)
    return ";".join(f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in by_topic.items()) or None


def groups_deleted(kind: str, names: Iterable[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"Deletion of requested {kind} groups ({listed}) was successful."


def print_offsets_deleted(group: str, outcomes: Outcomes[TopicPartition, Any]) -> None:
    if outcomes.failed:
        click.echo(f"Encounter some partition level error, see the follow-up details for group {group}.")
    else:
        click.echo(f"Request succeeded for deleting offsets from group {group}.")
    rows: list[dict[str, object]] = [
        {"topic": place.topic, "partition": place.partition, "status": "Successful"} for place in outcomes.succeeded
    ]
    rows += [
        {"topic": place.topic, "partition": place.partition, "status": f"Error: {error}"}
        for place, error in outcomes.failed.items()
    ]
    click.echo("")
    print_table(rows, {"TOPIC": "topic", "PARTITION": "partition", "STATUS": "status"})


# kafka-log-dirs


def log_dirs_text(found: Mapping[int, tuple[LogDirDescription, ...]], topics: set[str] | None) -> str:
    """Two lines that scripts skip, then one line of JSON."""
    brokers = [
        {
            "broker": broker,
            "logDirs": [
                {
                    "partitions": [
                        {
                            "partition": str(each.partition),
                            "size": each.size_bytes,
                            "offsetLag": each.offset_lag,
                            "isFuture": each.is_future,
                        }
                        for each in directory.replicas
                        if topics is None or each.partition.topic in topics
                    ],
                    "error": None if directory.error is None else type(directory.error).__name__,
                    "logDir": directory.path,
                }
                for directory in directories
            ],
        }
        for broker, directories in found.items()
    ]
    document = json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":"))
    return (
        "Querying brokers for log directories information\n"
        f"Received log directory information from brokers {','.join(map(str, found))}\n{document}"
    )


# kafka-metadata-quorum, kafka-features, kafka-cluster, kafka-broker-api-versions

QUORUM_REPLICAS: Final = {
    "NodeId": "node",
    "DirectoryId": "directory_id",
    "LogEndOffset": "log_end_offset",
    "Lag": "lag",
    "LastFetchTimestamp": "last_fetch_ms",
    "LastCaughtUpTimestamp": "last_caught_up_ms",
    "Status": "status",
}
ENDPOINTS: Final = {
    "ID": "id",
    "HOST": "host",
    "PORT": "port",
    "RACK": "rack",
    "STATE": "state",
    "ENDPOINT_TYPE": "endpoint_type",
}


def print_tabs(rows: Iterable[Mapping[str, object]], columns: Mapping[str, str]) -> None:
    """Print a table with a tab after each column, as kafka-metadata-quorum and kafka-transactions do."""
    lines = [list(columns), *([_cell(row.get(name)) for name in columns.values()] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines:
        click.echo("\t".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + "\t")


def feature_line(row: Mapping[str, object]) -> str:
    return (
        f"Feature: {row['feature']}\tSupportedMinVersion: {row['supported_min']}\t"
        f"SupportedMaxVersion: {row['supported_max']}\tFinalizedVersionLevel: {row['finalized']}\t"
        f"Epoch: {row['epoch']}"
    )


def quorum_text(status: Mapping[str, Any]) -> str:
    """The status of the quorum, a fact per line."""
    names = {
        "ClusterId": "cluster_id",
        "LeaderId": "leader_id",
        "LeaderEpoch": "leader_epoch",
        "HighWatermark": "high_watermark",
        "MaxFollowerLag": "max_follower_lag",
        "MaxFollowerLagTimeMs": "max_follower_lag_time_ms",
    }
    facts = {name: status[field] for name, field in names.items()}
    for name, field in (("CurrentVoters", "voters"), ("CurrentObservers", "observers")):
        facts[name] = json.dumps(status[field], separators=(", ", ": "))
    width = max(map(len, facts)) + 2
    return "\n".join(f"{f'{name}:'.ljust(width)}{value}" for name, value in facts.items())


# kafka-consumer-perf-test


def consumer_perf_lines(count: int, size_bytes: int, elapsed_s: float, now_s: float) -> list[str]:
    """The headings and the figures of kafka-consumer-perf-test. Partitions are assigned manually, so no time is spent
    in a rebalance."""
    columns = (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
        "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    elapsed_s = max(elapsed_s, 0.001)
    megabytes = size_bytes / (1 << 20)
    per_second = f"{megabytes / elapsed_s:.4f}", f"{count / elapsed_s:.4f}"
    figures = (
        *(_date(now_s - elapsed_s), _date(now_s), f"{megabytes:.4f}", per_second[0], str(count), per_second[1]),
        *("0", str(round(elapsed_s * 1000)), *per_second),
    )
    return [columns, ", ".join(figures)]


def _date(seconds: float) -> str:
    import time

    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(seconds))}:{int(seconds * 1000) % 1000:03d}"


# kafka-storage


def storage_text(rows: Sequence[Mapping[str, object]]) -> str:
    """The log directories of a node, and the owner according to the first formatted directory."""
    several = "directories" if len(rows) > 1 else "directory"
    lines = [f"Found log {several}:", *(f"  {row['directory']}" for row in rows), ""]
    formatted = [row for row in rows if "cluster_id" in row]
    if formatted:
        first = formatted[0]
        facts = (
            f"cluster.id={first['cluster_id']}, directory.id={first['directory_id']}, "
            f"node.id={first['node_id']}, version=1"
        )
        lines += [f"Found metadata: {{{facts}}}", ""]
    problems = [f"  {row['directory']} is not formatted." for row in rows if row not in formatted]
    if problems:
        lines += ["Found problem:" if len(problems) == 1 else "Found problems:", *problems, ""]
    return "\n".join(lines)


# kafka-transactions

TRANSACTIONS: Final = {
    "TransactionalId": "transactional_id",
    "Coordinator": "coordinator",
    "ProducerId": "producer_id",
    "TransactionState": "state",
}
TRANSACTION: Final = {
    "CoordinatorId": "coordinator",
    "TransactionalId": "transactional_id",
    "ProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "TransactionState": "state",
    "TransactionTimeoutMs": "timeout_ms",
    "CurrentTransactionStartTimeMs": "start_ms",
    "TransactionDurationMs": "duration_ms",
    "TopicPartitions": "partitions",
}
PRODUCERS: Final = {
    "ProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "LatestCoordinatorEpoch": "coordinator_epoch",
    "LastSequence": "last_sequence",
    "LastTimestamp": "last_timestamp",
    "CurrentTransactionStartOffset": "transaction_start_offset",
}
HANGING: Final = {
    "Topic": "topic",
    "Partition": "partition",
    "ProducerId": "producer_id",
    "ProducerEpoch": "producer_epoch",
    "CoordinatorEpoch": "coordinator_epoch",
    "StartOffset": "start_offset",
    "LastTimestamp": "last_timestamp",
    "Duration(min)": "idle_minutes",
}
