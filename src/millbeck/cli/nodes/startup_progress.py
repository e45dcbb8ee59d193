"""Reports on standard error what a starting node is waiting for, if that takes long.

Waiting is normal while the nodes of a cluster are started one after the other. A node whose peers never start, or
belong to another cluster, looks the same from outside, so the reason is printed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.server.node import Node

PATIENCE_SECONDS: Final = 10.0
REPEAT_SECONDS: Final = 60.0


async def report_startup_progress(node: Node) -> None:
    """Report while the node starts; the caller cancels it after that."""
    await asyncio.sleep(PATIENCE_SECONDS)
    while True:
        click.echo(f"millbeck: still starting: {startup_status(node)}", err=True)
        await asyncio.sleep(REPEAT_SECONDS)


def startup_status(node: Node) -> str:
    quorum = getattr(node.broker, "quorum", None)
    if quorum is None or quorum.machine is None:
        return "opening its logs"
    if quorum.leader.node_id < 0:
        voters = ", ".join(
            f"{voter.node_id}@{endpoint.host}:{endpoint.port}"
            for voter in quorum.voters.voters
            for endpoint in voter.endpoints[:1]
        )
        servers = ", ".join(map(str, quorum.settings.bootstrap_servers))
        return (
            f"no active controller yet. A majority of the voters must be reachable and of cluster {node.cluster_id}: "
            f"{voters or servers or 'no voter known'}"
        )
    part = node.broker_part
    leader = f"controller {quorum.leader.node_id}"
    if part is not None and part.membership.refusal:
        return f"{leader} refuses to register broker {node.node_id}: {part.membership.refusal}"
    if node.broker_epoch < 0:
        return f"copying the metadata log from {leader}"
    return f"{leader} has not unfenced broker {node.node_id} yet"
