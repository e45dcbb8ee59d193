"""``millbeck doctor``: find problems that keep a node from running here, or clients from reaching a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.doctor_checks import (
    FAIL,
    OK,
    WARN,
    Finding,
    check_certificates,
    check_compiled,
    check_directory,
    check_open_files,
    check_port,
    check_python,
    check_room,
)
from millbeck.cli.output import TABLE, output_option, show
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import LogDirDescription, LogReplica, NodeDescription
    from millbeck.client.metadata import PartitionMetadata
    from millbeck.kernel.environment import Environment

PROBE_SECONDS_MAX = 5.0
NAMED_MAX = 10
"""The maximum number of replicas or partitions named individually; the others are only counted."""


@click.command(cls=Command)
@click.option(
    "--data", metavar="DIR", type=FILE, default=".millbeck", show_default=True, help="The node's data directory."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address the node listens on.")
@click.option("--port", default=9092, show_default=True, type=click.IntRange(0, 65535), help="The node's port.")
@click.option(
    "--metrics-port", default=9404, show_default=True, type=click.IntRange(0, 65535), help="The port of its /metrics."
)
@click.option(
    "--config", metavar="FILE", type=FILE, help="The node's server.properties file; its certificates are checked."
)
@click.option(
    "--ready", is_flag=True, help="Only check whether the node at --bootstrap-server is ready, for a health check."
)
@output_option
@target_options
def command(
    data: str, host: str, port: int, metrics_port: int, config: str | None, ready: bool, output: str, target: Target
) -> None:
    """Check this machine and a cluster for problems. Changes nothing; exit code 1 if a check fails.

    \b
    Examples:
      millbeck doctor
      millbeck doctor --data /var/lib/millbeck --port 9092
      millbeck doctor --config /etc/millbeck/server.properties
      millbeck doctor --bootstrap-server broker.example:9092 --output json
      millbeck doctor --ready -b 127.0.0.1:9092
    """
    if ready:
        run_admin(target, _check_ready)
        return
    from millbeck import compiled
    from millbeck.records.native import COMPILED

    findings = [
        check_python(),
        check_compiled(
            COMPILED and compiled.in_use(), compiled.is_stale() or compiled.is_stale(stamps=compiled.NATIVE_STAMPS)
        ),
        check_open_files(),
        check_port(host, port, "--port", data),
        check_port("127.0.0.1", metrics_port, "--metrics-port", data),
        *check_directory(data),
        *(check_certificates(config) if config else ()),
        *_check_cluster(target),
    ]
    if output == TABLE:
        for finding in findings:
            click.echo(line_of(finding))
    else:
        show(
            [{name: getattr(each, name) for name in ("status", "subject", "detail", "advice")} for each in findings],
            output,
        )
    if any(finding.status == FAIL for finding in findings):
        raise SystemExit(1)


def line_of(finding: Finding) -> str:
    advice = f"\n      -> {finding.advice}" if finding.advice else ""
    return f"{finding.status.ljust(4)}  {finding.subject}: {finding.detail}{advice}"


async def _check_ready(admin: Admin) -> None:
    """Succeed if the node answers Metadata, which it does once the controller has registered and unfenced it."""
    described = await admin.describe_cluster(timeout_s=PROBE_SECONDS_MAX)
    click.echo(f"ready: cluster {described.cluster_id}, {len(described.nodes)} broker(s)")


def _check_cluster(target: Target) -> list[Finding]:
    """Check that the cluster answers, and that each broker answers at its advertised address."""
    import asyncio

    from millbeck.host import real_environment
    from millbeck.kernel.errors import ApiError

    try:
        return asyncio.run(_probe(real_environment(), target))
    except ApiError as error:
        return [
            Finding(
                status=WARN,
                subject=f"cluster at {target.bootstrap}",
                detail=f"no answer: {error}",
                advice="start one with `millbeck up`, or give its address with --bootstrap-server",
            )
        ]


async def _probe(environment: Environment, target: Target) -> list[Finding]:
    from millbeck.client.admin import Admin
    from millbeck.client.retry import Deadline

    async with Admin(target.client_settings(client_id="millbeck-doctor"), environment=environment) as admin:
        await admin.cluster.any_connection(Deadline(PROBE_SECONDS_MAX))
        described = await admin.describe_cluster(timeout_s=PROBE_SECONDS_MAX)
        detail = f"cluster {described.cluster_id}, {len(described.nodes)} broker(s)"
        found = [Finding(status=OK, subject=f"cluster at {target.bootstrap}", detail=detail)]
        admin.cluster.wants_all_topics = True
        await admin.cluster.refresh(Deadline(PROBE_SECONDS_MAX))
        found += [await _probe_node(admin, node) for node in described.nodes]
        found += _absent_brokers(admin, {node.node_id for node in described.nodes})
        return [*found, *_leaderless(admin), *_out_of_sync(admin), *await _probe_log_directories(admin)]


async def _probe_node(admin: Admin, node: NodeDescription) -> Finding:
    from millbeck.client.retry import Deadline
    from millbeck.kernel.errors import ApiError

    subject = f"broker {node.node_id} at {node.host}:{node.port}"
    try:
        await admin.cluster.connection(node.node_id, deadline=Deadline(PROBE_SECONDS_MAX))
    except ApiError as error:
        return Finding(
            status=FAIL,
            subject=subject,
            detail=f"this is the advertised address, and clients cannot reach it: {error}",
            advice="set advertised.listeners to an address that clients can reach",
        )
    return Finding(status=OK, subject=subject, detail="reachable at its advertised address")


def _absent_brokers(admin: Admin, present: Collection[int]) -> list[Finding]:
    """Find brokers that have replicas but are down, fenced or unregistered."""
    counts = Counter(
        broker
        for topic in admin.cluster.metadata.topics.values()
        for partition in topic.partitions.values()
        for broker in partition.replicas
        if broker not in present
    )
    advice = (
        "see the last lines of its log for the reason; start it, or move its replicas away with `millbeck reassign`"
    )
    return [
        Finding(
            status=FAIL,
            subject=f"broker {broker}",
            detail=f"down or fenced; {count} partition(s) have a replica on it",
            advice=advice,
        )
        for broker, count in sorted(counts.items())
    ]


def _partitions_with(admin: Admin, is_meant: Callable[[PartitionMetadata], bool]) -> list[str]:
    return sorted(
        f"{name}-{each.partition}"
        for name, topic in admin.cluster.metadata.topics.items()
        for each in topic.partitions.values()
        if is_meant(each)
    )


def _out_of_sync(admin: Admin) -> list[Finding]:
    """Find partitions with a leader whose replicas are not all in sync."""
    names = _partitions_with(admin, lambda each: each.leader_id >= 0 and len(each.in_sync) < len(each.replicas))
    if not names:
        return []
    advice = "`millbeck topic describe --under-replicated-partitions` shows them; right after a restart, wait a little"
    detail = f"not all replicas are in sync: {_some_of(names)}"
    return [Finding(status=WARN, subject=f"{len(names)} partition(s)", detail=detail, advice=advice)]


def _leaderless(admin: Admin) -> list[Finding]:
    names = _partitions_with(admin, lambda each: each.leader_id < 0)
    if not names:
        return []
    advice = "`millbeck topic describe --unavailable-partitions` shows their replicas; see docs/operations.md"
    detail = f"no leader, so reads and writes fail: {_some_of(names)}"
    return [Finding(status=FAIL, subject=f"{len(names)} partition(s)", detail=detail, advice=advice)]


def _some_of(names: list[str]) -> str:
    rest = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(names[:NAMED_MAX]) + rest


async def _probe_log_directories(admin: Admin) -> list[Finding]:
    """Check free space on the brokers' disks, failed log directories, and offline replicas."""
    outcomes = await admin.describe_log_dirs(timeout_s=PROBE_SECONDS_MAX)
    found = [
        Finding(status=WARN, subject=f"log directories of broker {broker}", detail=f"cannot be read: {error}")
        for broker, error in outcomes.failed.items()
    ]
    for broker, directories in sorted(outcomes.succeeded.items()):
        for directory in directories:
            found += _state_of_directory(admin, broker, directory)
    return found


def _state_of_directory(admin: Admin, broker: int, directory: LogDirDescription) -> list[Finding]:
    subject = f"{directory.path} of broker {broker}"
    if directory.error is not None:
        advice = "restore it or replace the disk (docs/operations.md, Log directories)"
        return [
            Finding(
                status=FAIL, subject=subject, detail=directory.offline_reason or str(directory.error), advice=advice
            )
        ]
    offline = sorted(
        (each for each in directory.replicas if each.offline_reason is not None), key=lambda each: each.partition
    )
    found = [_offline_replica(admin, broker, directory, each) for each in offline[:NAMED_MAX]]
    if len(offline) > NAMED_MAX:
        detail = f"{len(offline) - NAMED_MAX} more replicas are offline"
        found.append(Finding(status=FAIL, subject=subject, detail=detail, advice="`millbeck log-dirs` lists them all"))
    if directory.total_bytes >= 0:
        found.append(check_room(subject, directory.usable_bytes, directory.total_bytes))
    return found


def _offline_replica(admin: Admin, broker: int, directory: LogDirDescription, replica: LogReplica) -> Finding:
    topic = admin.cluster.metadata.topics.get(replica.partition.topic)
    partition = None if topic is None else topic.partitions.get(replica.partition.partition)
    if partition is not None and partition.leader_id >= 0:
        advice = f"broker {partition.leader_id} leads it, and this replica is copied from there"
    else:
        advice = f"stop broker {broker} and run `millbeck log repair {directory.path}/{replica.partition}`"
    return Finding(
        status=FAIL,
        subject=f"{replica.partition} on broker {broker}",
        detail=f"offline: {replica.offline_reason}",
        advice=advice,
    )
