"""``millbeck cluster``: show the cluster id, list the nodes, unregister brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Show the cluster and unregister brokers (Kafka's kafka-cluster)."""


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
@click.option("--include-fenced-brokers", is_flag=True, help="Also list fenced brokers (registered, but not running).")
@output_option
@target_options
def list_endpoints(include_fenced_brokers: bool, output: str, target: Target) -> None:
    """List the brokers and their advertised listeners.

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
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import ENDPOINTS, print_table

            print_table(({**row, "rack": row["rack"] or "null"} for row in rows), ENDPOINTS)
            return
        show_rows(rows, output)

    run_admin(target, work)


@command.command("api-versions")
@output_option
@target_options
def api_versions(output: str, target: Target) -> None:
    """Show the API versions that the brokers support.

    
    Examples:
      millbeck cluster api-versions
      millbeck cluster api-versions --output json
    """

    async def work(admin: Admin) -> None:
        from millbeck.cli.commands.topic import raise_failures
        from millbeck.wire.api_keys import APIS

        nodes = {node.node_id: node for node in (await admin.describe_cluster()).nodes}
        found = await admin.describe_api_versions()
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.api_versions import broker_lines

            for node_id, ranges in found.succeeded.items():
                click.echo("\n".join(broker_lines(nodes[node_id], ranges)))
        else:
            rows = [
                {
                    "broker": node_id,
                    "api": APIS[key].name if key in APIS else None,
                    "key": key,
                    "min_version": low,
                    "max_version": high,
                }
                for node_id, ranges in found.succeeded.items()
                for key, (low, high) in sorted(ranges.items())
            ]
            show_rows(rows, output)
        raise_failures({f"broker {node_id}": error for node_id, error in found.failed.items()})

    run_admin(target, work)


@command.command("unregister")
@click.option("-i", "--id", "broker_id", required=True, type=click.IntRange(min=0), help="The broker id.")
@target_options
def unregister(broker_id: int, target: Target) -> None:
    """Remove the registration of a broker that will not return. A running broker registers again when it restarts.

    \b
    Examples:
      millbeck cluster unregister --id 3
    """

    async def work(admin: Admin) -> None:
        await admin.unregister_broker(broker_id)
        click.echo(
            f"broker {broker_id} is no longer registered"
            if kafka_tool() is None
            else f"Broker {broker_id} is no longer registered."
        )

    run_admin(target, work)
