"""Topics as ``millbeck topic describe`` shows them: what is shown, which partitions, and the lines of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from millbeck.cli.output import TABLE, show
from millbeck.cli.verbs import kafka_tool
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import PartitionDescription, TopicDescription


def is_kept(partition: PartitionDescription, filters: Iterable[str], min_isr: int) -> bool:
    """Whether a partition passes the filters of describe."""
    in_sync = len(partition.in_sync)
    facts = {
        "under_replicated_partitions": in_sync < len(partition.replicas),
        "unavailable_partitions": partition.leader_id < 0,
        "under_min_isr_partitions": in_sync < min_isr,
        "at_min_isr_partitions": in_sync == min_isr,
    }
    return any(facts[name] for name in filters)


async def settings_of_topics(
    admin: Admin, names: list[str]
) -> tuple[dict[str, dict[str, str]], dict[str, int], list[str]]:
    """Each topic's overrides, its min.insync.replicas, and the set of compacted topics."""
    from millbeck.client.admin.results import ConfigResource, ResourceType
    from millbeck.kernel.option_layers import ConfigSource

    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
    described = (await admin.describe_configs(resources.values())).all() if resources else {}
    overrides: dict[str, dict[str, str]] = {}
    min_isr: dict[str, int] = {}
    compacted: list[str] = []
    for name, resource in resources.items():
        entries = described[resource]
        overrides[name] = {
            key: entry.value or ""
            for key, entry in entries.items()
            if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG
            or (kafka_tool() is not None and entry.source != ConfigSource.DEFAULT_CONFIG)
        }
        entry = entries.get("min.insync.replicas")
        min_isr[name] = int(entry.value or 1) if entry is not None else 1
        policy = entries.get("cleanup.policy")
        if policy is not None and "compact" in (policy.value or "").split(","):
            compacted.append(name)
    return overrides, min_isr, compacted


async def dirty_ratios_of(admin: Admin, topics: list[TopicDescription]) -> dict[TopicPartition, float | None]:
    """The dirty ratio by partition, as leaders report it; None where a leader does not or access is denied."""
    leaders = {
        TopicPartition(topic.name, each.partition): each.leader_id
        for topic in topics
        for each in topic.partitions
        if each.leader_id >= 0
    }
    if not leaders:
        return {}
    outcomes = await admin.describe_log_dirs(sorted(set(leaders.values())))
    return {
        replica.partition: replica.dirty_ratio
        for node_id, directories in outcomes.succeeded.items()
        for directory in directories
        for replica in directory.replicas
        if leaders.get(replica.partition) == node_id and not replica.is_future
    }


def shown_topic(
    topic: TopicDescription,
    partitions: list[PartitionDescription],
    overrides: dict[str, str],
    dirty_ratios: dict[TopicPartition, float | None] | None,
) -> dict[str, Any]:
    """The fields of a topic; ``dirty_ratios`` is None for a topic that is not compacted."""
    from millbeck.kernel.ids import uuid_text

    def dirty_ratio_fields(each: PartitionDescription) -> dict[str, float | None]:
        if dirty_ratios is None:
            return {}
        return {"dirty_ratio": dirty_ratios.get(TopicPartition(topic.name, each.partition))}

    return {
        "name": topic.name,
        "id": uuid_text(topic.topic_id),
        "partition_count": len(topic.partitions),
        "replication_factor": max((len(each.replicas) for each in topic.partitions), default=0),
        "internal": topic.is_internal,
        "configs": overrides,
        "partitions": [
            {
                "partition": each.partition,
                "leader": None if each.leader_id < 0 else each.leader_id,
                "epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.in_sync),
                "elr": None if each.eligible_leaders is None else list(each.eligible_leaders),
                "last_known_elr": (
                    None if each.last_known_eligible_leaders is None else list(each.last_known_eligible_leaders)
                ),
                "offline": list(each.offline),
                **dirty_ratio_fields(each),
            }
            for each in partitions
        ],
    }


def show_topics(topics: list[dict[str, Any]], output: str, *, with_heads: bool) -> None:
    if output != TABLE:
        show(topics, output)
        return
    for topic in topics:
        # With a filter, partitions are printed without topic lines, as by Kafka's tool: scripts count the lines.
        for line in described_lines(topic)[0 if with_heads else 1 :]:
            click.echo(line)


def described_lines(topic: dict[str, Any]) -> list[str]:
    """A topic and its partitions in the format of Kafka's tool (tab-separated), so that scripts can grep it."""
    head = {
        "Topic": topic["name"],
        "TopicId": topic["id"],
        "PartitionCount": topic["partition_count"],
        "ReplicationFactor": topic["replication_factor"],
        "Configs": ",".join(f"{key}={value}" for key, value in topic["configs"].items()),
    }
    lines = [_fields(head)]
    for each in topic["partitions"]:
        row = {
            "Topic": topic["name"],
            "Partition": each["partition"],
            "Leader": "none" if each["leader"] is None else each["leader"],
            "Replicas": _ids(each["replicas"]),
            "Isr": _ids(each["isr"]),
            "Elr": _ids(each["elr"]),
            "LastKnownElr": _ids(each["last_known_elr"]),
        }
        if each["offline"]:
            row["Offline"] = _ids(each["offline"])
        if "dirty_ratio" in each:
            row["DirtyRatio"] = "-" if each["dirty_ratio"] is None else f"{each['dirty_ratio']:.2f}"
        lines.append(f"\t{_fields(row)}")
    return lines


def _fields(row: dict[str, object]) -> str:
    return "\t".join(f"{name}: {value}" for name, value in row.items())


def _ids(brokers: list[int] | None) -> str:
    return "N/A" if brokers is None else ",".join(map(str, brokers))
