"""``millbeck doctor``: what would keep a node from running well here, or a client from reaching it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import DEFAULT_BOOTSTRAP
from millbeck.cli.findings import (
    FAIL,
    OK,
    WARN,
    Finding,
    check_directory,
    check_kernels,
    check_open_files,
    check_port,
    check_python,
)
from millbeck.cli.output import TABLE, output_option, show

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import NodeDescription
    from millbeck.kernel.environment import Environment

PROBE_SECONDS_MAX = 5.0


@click.command()
@click.option("--data", metavar="DIR", default=".millbeck", show_default=True, help="The data directory of the node.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the node listens or shall listen.")
@click.option("--port", default=9092, show_default=True, type=click.IntRange(0, 65535), help="The node's port.")
@click.option("--metrics-port", default=9404, show_default=True, type=click.IntRange(0, 65535), help="Its /metrics.")
@click.option(
    "-b",
    "--bootstrap-server",
    envvar="MILLBECK_BOOTSTRAP",
    default=DEFAULT_BOOTSTRAP,
    show_default=True,
    metavar="HOST:PORT,…",
    help="A running cluster, to see whether clients reach all of it.",
)
@output_option
def command(data: str, host: str, port: int, metrics_port: int, bootstrap_server: str, output: str) -> None:
    """Look for what keeps a node from running well here. Changes nothing; exit code 1 when something fails.

    \b
    Examples:
      millbeck doctor
      millbeck doctor --data /var/lib/millbeck --port 9092
      millbeck doctor --bootstrap-server broker.example:9092 --output json
    """
    from millbeck import compiled
    from millbeck.records.kernels import COMPILED

    findings = [
        check_python(),
        check_kernels(COMPILED and compiled.in_use()),
        check_open_files(),
        check_port(host, port, "--port"),
        check_port("127.0.0.1", metrics_port, "--metrics-port"),
        *check_directory(data),
        *_check_cluster(bootstrap_server),
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


def _check_cluster(bootstrap: str) -> list[Finding]:
    """Whether a cluster answers, and whether each broker answers at the address it tells clients."""
    import asyncio

    from millbeck.host import real_environment
    from millbeck.kernel.errors import ApiError

    try:
        return asyncio.run(_probe(real_environment(), bootstrap))
    except ApiError as error:
        return [
            Finding(
                status=WARN,
                subject=f"cluster at {bootstrap}",
                detail=f"no answer: {error}",
                advice="start one with `millbeck up`, or name another with --bootstrap-server",
            )
        ]


async def _probe(environment: Environment, bootstrap: str) -> list[Finding]:
    from millbeck.client.admin import Admin
    from millbeck.client.retry import Deadline

    settings = {"bootstrap.servers": bootstrap, "client.id": "millbeck-doctor"}
    async with Admin(environment, settings) as admin:
        await admin.cluster.any_connection(Deadline(PROBE_SECONDS_MAX))
        described = await admin.describe_cluster(timeout_s=PROBE_SECONDS_MAX)
        detail = f"cluster {described.cluster_id}, {len(described.nodes)} broker(s)"
        found = [Finding(status=OK, subject=f"cluster at {bootstrap}", detail=detail)]
        await admin.cluster.refresh(Deadline(PROBE_SECONDS_MAX))
        return [*found, *[await _probe_node(admin, node) for node in described.nodes]]


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
            detail=f"clients are told this address and cannot reach it: {error}",
            advice="set advertised.listeners to an address that clients can reach",
        )
    return Finding(status=OK, subject=subject, detail="reachable at the address clients are told")
