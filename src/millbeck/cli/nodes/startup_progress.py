"""A node that starts may have to wait for others: standard error says for what, when that takes long.

Nothing is wrong with waiting, as when the nodes of a cluster are started one after the other. But a node whose peers
never come, or belong to another cluster, looks the same from outside, and whoever started it has to be told.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.server.node import Node

PATIENCE_SECONDS: Final = 10.0
REPEAT_SECONDS: Final = 60.0


async def tell_what_is_missing(node: Node) -> None:
    """For as long as the node starts; whoever calls this cancels it then."""
    await asyncio.sleep(PATIENCE_SECONDS)
    while True:
        click.echo(f"millbeck: still starting: {what_is_missing(node)}", err=True)
        await asyncio.sleep(REPEAT_SECONDS)


def what_is_missing(node: Node) -> str:
    quorum = getattr(node.broker, "quorum", None)
    if quorum is None or quorum.machine is None:
        return "its logs are being opened"
    if quorum.leader.node_id < 0:
        voters = ", ".join(
            f"{voter.node_id}@{endpoint.host}:{endpoint.port}"
            for voter in quorum.voters.voters
            for endpoint in voter.endpoints[:1]
        )
        servers = ", ".join(map(str, quorum.settings.bootstrap_servers))
        return (
            f"no controller leads. Most of the voters must be reachable and of cluster {node.cluster_id}: "
            f"{voters or servers or 'none is known'}"
        )
    part = node.broker_part
    leader = f"controller {quorum.leader.node_id}"
    if part is not None and part.membership.refusal:
        return f"{leader} does not register broker {node.node_id}: {part.membership.refusal}"
    if node.broker_epoch < 0:
        return f"the metadata of {leader} is being copied"
    return f"{leader} has not let broker {node.node_id} in yet"
