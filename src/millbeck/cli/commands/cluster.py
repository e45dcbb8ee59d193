"""``millbeck cluster``: its id, its nodes, and brokers that are to be forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import VerbGroup

if TYPE_CHECKING:
    from millbeck.client.admin import Admin


@click.group(cls=VerbGroup, flags={})
def command() -> None:
    """The cluster as a whole: what Kafka's kafka-cluster does."""


@command.command("id")
@target_options
def show_id(target: Target) -> None:
    """Print the cluster's id, as Kafka's cluster-id does.

    \b
    Examples:
      millbeck cluster id
    """

    async def work(admin: Admin) -> None:
        click.echo(f"Cluster ID: {(await admin.describe_cluster()).cluster_id}")

    run_admin(target, work)


command.add_command(show_id, "cluster-id")


@command.command("list-endpoints")
@click.option("--include-fenced-brokers", is_flag=True, help="Also those that are registered and not there.")
@output_option
@target_options
def list_endpoints(include_fenced_brokers: bool, output: str, target: Target) -> None:
    """List the brokers and where they listen.

    \b
    Examples:
      millbeck cluster list-endpoints --output json
      millbeck cluster list-endpoints --include-fenced-brokers
    """

    async def work(admin: Admin) -> None:
        found = await admin.describe_cluster(include_fenced_brokers=include_fenced_brokers)
        rows = [
            {
                "id": node.node_id,
                "host": node.host,
                "port": node.port,
                "rack": node.rack,
                "state": "fenced" if node.is_fenced else "unfenced",
                "endpoint_type": "broker",
            }
            for node in found.nodes
        ]
        show_rows(rows, output)

    run_admin(target, work)


@command.command("unregister")
@click.option("-i", "--id", "broker_id", required=True, type=click.IntRange(min=0), help="The broker's number.")
@target_options
def unregister(broker_id: int, target: Target) -> None:
    """Forget a broker that is gone for good. One that still runs comes back by itself when it is started again.

    \b
    Examples:
      millbeck cluster unregister --id 3
    """

    async def work(admin: Admin) -> None:
        await admin.unregister_broker(broker_id)
        click.echo(f"broker {broker_id} is no longer registered")

    run_admin(target, work)
