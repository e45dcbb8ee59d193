"""``millbeck quorum``: the nodes that keep the cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import VerbGroup

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import QuorumDescription, QuorumReplica


@click.group(cls=VerbGroup, flags={"--describe": "describe"})
def command() -> None:
    """The metadata quorum: what Kafka's kafka-metadata-quorum shows."""


@command.command("describe")
@click.option("-s", "--status", is_flag=True, help="Leader, epoch and how far it is (what is shown anyway).")
@click.option("-r", "--replication", "--re", is_flag=True, help="Each node's log instead.")
@output_option
@target_options
@click.pass_context
def describe(ctx: click.Context, status: bool, replication: bool, output: str, target: Target) -> None:
    """Describe the quorum.

    \b
    Examples:
      millbeck quorum describe
      millbeck quorum describe --replication --output json
    """
    if status and replication:
        raise click.UsageError("choose one of --status and --replication", ctx)

    async def work(admin: Admin) -> None:
        quorum = await admin.describe_quorum()
        if replication:
            show_rows(replica_rows(quorum), output)
            return
        shown = status_of(quorum, (await admin.describe_cluster()).cluster_id)
        if output == TABLE:
            width = max(map(len, shown))
            for name, value in shown.items():
                click.echo(f"{name.replace('_', ' ').ljust(width)}  {value}")
        else:
            show(shown, output)

    run_admin(target, work)


def status_of(quorum: QuorumDescription, cluster_id: str | None) -> dict[str, object]:
    end = max((each.log_end_offset for each in quorum.voters), default=0)
    behind = [end - each.log_end_offset for each in quorum.voters]
    return {
        "cluster_id": cluster_id,
        "leader_id": quorum.leader_id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "max_follower_lag": max(behind, default=0),
        "voters": [each.replica_id for each in quorum.voters],
        "observers": [each.replica_id for each in quorum.observers],
    }


def replica_rows(quorum: QuorumDescription) -> list[dict[str, object]]:
    from millbeck.kernel.ids import uuid_text

    end = max((each.log_end_offset for each in quorum.voters), default=0)

    def row(replica: QuorumReplica, role: str) -> dict[str, object]:
        return {
            "node": replica.replica_id,
            "directory_id": uuid_text(replica.directory_id),
            "log_end_offset": replica.log_end_offset,
            "lag": end - replica.log_end_offset,
            "last_fetch_ms": replica.last_fetch_timestamp,
            "last_caught_up_ms": replica.last_caught_up_timestamp,
            "status": "leader" if replica.replica_id == quorum.leader_id else role,
        }

    return [
        *(row(each, "follower") for each in quorum.voters),
        *(row(each, "observer") for each in quorum.observers),
    ]
