"""``millbeck quorum``: show the metadata quorum, add and remove controllers as voters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.verbs import SubcommandGroup, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import QuorumDescription, QuorumReplica
    from millbeck.kernel.ids import Uuid
    from millbeck.server.config import NodeConfig

_OF_CLIENTS = ("security.", "ssl.", "sasl.", "request.timeout.ms", "default.api.timeout.ms")
"""Settings of a server.properties file that the admin client uses too, when it is given as --command-config."""


@click.group(cls=SubcommandGroup, flags={"--describe": "describe"})
def command() -> None:
    """Manage the metadata quorum (Kafka's kafka-metadata-quorum)."""


@command.command("describe")
@click.option("-s", "--status", is_flag=True, help="Show the leader, epoch and high watermark (the default).")
@click.option("-r", "--replication", "--re", is_flag=True, help="Show the log end offset and lag of each node instead.")
@click.option("--human-readable", "--hr", is_flag=True, help="With --replication: show ages instead of timestamps.")
@output_option
@target_options
@click.pass_context
def describe(
    ctx: click.Context, status: bool, replication: bool, human_readable: bool, output: str, target: Target
) -> None:
    """Describe the quorum.

    \b
    Examples:
      millbeck quorum describe
      millbeck quorum describe --replication --human-readable
      millbeck quorum describe --replication --output json
    """
    if status and replication:
        raise click.UsageError("choose one of --status and --replication", ctx)
    if human_readable and not replication:
        raise click.UsageError("--human-readable needs --replication", ctx)
    if kafka_tool() is not None and not (status or replication):
        raise click.UsageError("give --status or --replication", ctx)

    async def work(admin: Admin) -> None:
        quorum = await admin.describe_quorum()
        if replication:
            rows = replica_rows(quorum, round(time.time() * 1000) if human_readable else None)
            if kafka_tool() is None:
                show_rows(rows, output)
            else:
                from millbeck.cli.kafka_tools.formats import QUORUM_REPLICAS, print_tabs

                print_tabs(({**row, "status": str(row["status"]).capitalize()} for row in rows), QUORUM_REPLICAS)
            return
        shown = status_of(quorum, (await admin.describe_cluster()).cluster_id)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import quorum_text

            voters, observers = quorum_members(quorum, quorum.voters), quorum_members(quorum, quorum.observers)
            click.echo(quorum_text({**shown, "voters": voters, "observers": observers}))
            return
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
        "max_follower_lag_time_ms": lag_time_ms(quorum),
        "voters": [each.replica_id for each in quorum.voters],
        "observers": [each.replica_id for each in quorum.observers],
    }


def quorum_members(quorum: QuorumDescription, replicas: Iterable[QuorumReplica]) -> list[dict[str, object]]:
    """The ids, directories and endpoints of the quorum's members; unknown ones are left out."""
    from millbeck.kernel.ids import ZERO_UUID, uuid_text

    members: list[dict[str, object]] = []
    for each in replicas:
        member: dict[str, object] = {"id": each.replica_id}
        if each.directory_id != ZERO_UUID:
            member["directoryId"] = uuid_text(each.directory_id)
        if endpoints := quorum.endpoints.get(each.replica_id):
            member["endpoints"] = [f"{name}://{host}:{port}" for name, host, port in endpoints]
        members.append(member)
    return members


def lag_time_ms(quorum: QuorumDescription) -> int:
    """The time since the slowest voter was last caught up; -1 if a voter has not caught up with this leader yet."""
    caught_up = {each.replica_id: each.last_caught_up_timestamp for each in quorum.voters}
    if not caught_up or min(caught_up.values()) < 0:
        return -1
    return max(0, caught_up.get(quorum.leader_id, max(caught_up.values())) - min(caught_up.values()))


def replica_rows(quorum: QuorumDescription, now_ms: int | None = None) -> list[dict[str, object]]:
    """One row per replica; with ``now_ms``, timestamps are shown as ages."""
    from millbeck.kernel.ids import uuid_text

    end = max((each.log_end_offset for each in quorum.voters), default=0)

    def age(timestamp: int) -> object:
        if now_ms is None:
            return timestamp
        return "never" if timestamp < 0 else f"{max(0, now_ms - timestamp)} ms ago"

    def row(replica: QuorumReplica, role: str) -> dict[str, object]:
        return {
            "node": replica.replica_id,
            "directory_id": uuid_text(replica.directory_id),
            "log_end_offset": replica.log_end_offset,
            "lag": end - replica.log_end_offset,
            "last_fetch_ms": age(replica.last_fetch_timestamp),
            "last_caught_up_ms": age(replica.last_caught_up_timestamp),
            "status": "leader" if replica.replica_id == quorum.leader_id else role,
        }

    return [
        *(row(each, "follower") for each in quorum.voters),
        *(row(each, "observer") for each in quorum.observers),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewController:
    """The id, directory and endpoints of a controller that is to become a voter."""

    node_id: int
    directory_id: Uuid
    endpoints: tuple[tuple[str, str, int], ...]


@command.command("add-controller")
@click.option(
    "-c",
    "--config",
    "path",
    metavar="FILE",
    type=FILE,
    help="The new controller's server.properties; --command-config may name it too.",
)
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@target_options
@click.pass_context
def add_controller(ctx: click.Context, path: str | None, dry_run: bool, target: Target) -> None:
    """Make a controller that runs as an observer a voter. Run this on the host that has its directory.

    \b
    Examples:
      millbeck quorum add-controller --config controller.properties
    """
    from millbeck.kernel.ids import uuid_text

    config, target = _config_of(ctx, path, target)
    controller = new_controller(config)
    shown = " ".join(f"{name}://{host}:{port}" for name, host, port in controller.endpoints)
    about = f"controller {controller.node_id} with directory {uuid_text(controller.directory_id)} at {shown}"

    async def work(admin: Admin) -> None:
        if dry_run:
            with _voters_must_be_in_the_log():
                await check_voters_can_change(admin)
            click.echo(f"would add {about}")
            return
        cluster_id = (await admin.describe_cluster()).cluster_id
        with _voters_must_be_in_the_log():
            await admin.add_raft_voter(
                controller.node_id, controller.directory_id, controller.endpoints, cluster_id=cluster_id
            )
        click.echo(f"added {about}" if kafka_tool() is None else f"Added {about}")

    run_admin(target, work)


@command.command("remove-controller")
@click.option("-i", "--controller-id", required=True, type=click.IntRange(min=0), help="The controller's node id.")
@click.option("-d", "--controller-directory-id", "directory", help="Its directory id; not needed while it is a voter.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@target_options
@click.pass_context
def remove_controller(
    ctx: click.Context, controller_id: int, directory: str | None, dry_run: bool, target: Target
) -> None:
    """Remove a controller from the voters; it remains an observer until it is stopped.

    \b
    Examples:
      millbeck quorum remove-controller --controller-id 3
    """
    from millbeck.kernel.ids import parse_uuid, uuid_text

    try:
        given = None if directory is None else parse_uuid(directory)
    except ValueError as error:
        raise click.UsageError(f"--controller-directory-id: {error}", ctx) from error

    async def work(admin: Admin) -> None:
        directory_id = given or directory_of((await admin.describe_quorum()), controller_id)
        about = f"controller {controller_id} with directory {uuid_text(directory_id)}"
        if dry_run:
            with _voters_must_be_in_the_log():
                await check_voters_can_change(admin)
            click.echo(f"would remove {about}")
            return
        cluster_id = (await admin.describe_cluster()).cluster_id
        with _voters_must_be_in_the_log():
            await admin.remove_raft_voter(controller_id, directory_id, cluster_id=cluster_id)
        click.echo(f"removed {about}" if kafka_tool() is None else f"Removed KRaft {about}")

    run_admin(target, work)


async def check_voters_can_change(admin: Admin) -> None:
    """Raise `UnsupportedVersion`, as the controller would, if kraft.version does not support changing voters."""
    from millbeck.kernel.errors import UnsupportedVersion

    level = (await admin.describe_features()).finalized.get("kraft.version", (0, 0))[1]
    if level < 1:
        raise UnsupportedVersion(f"The voters cannot be changed with kraft.version {level}.")


@contextmanager
def _voters_must_be_in_the_log() -> Iterator[None]:
    from millbeck.kernel.errors import UnsupportedVersion

    try:
        yield
    except UnsupportedVersion as error:
        raise click.ClickException(
            f"{error} The voters are fixed by the nodes' configuration files, or were when the cluster was formatted: "
            "`millbeck feature upgrade --feature kraft.version=1` moves them to the metadata log, irreversibly."
        ) from error


def directory_of(quorum: QuorumDescription, node_id: int) -> Uuid:
    for voter in quorum.voters:
        if voter.replica_id == node_id:
            return voter.directory_id
    voters = ", ".join(str(each.replica_id) for each in quorum.voters)
    raise click.ClickException(f"controller {node_id} is not a voter; the voters are {voters}")


def new_controller(config: NodeConfig) -> NewController:
    """Read the controller's id, directory and endpoints from its configuration and directory."""
    from millbeck.host import real_environment
    from millbeck.server.local.initial_quorum import initial_addresses
    from millbeck.storage.properties import MetaPropertiesError, read_meta_properties

    if not config.is_controller:
        raise click.ClickException(
            f"node {config.node.node_id} is not a controller: process.roles does not list controller"
        )
    try:
        environment = real_environment()
        meta = read_meta_properties(environment.files, config.metadata_directory)
        endpoints = initial_addresses(config, environment.network.host_name)
    except (MetaPropertiesError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if meta is None:
        raise click.ClickException(
            f"{config.metadata_directory} is not formatted: start the controller before adding it as a voter"
        )
    node_id = config.node.node_id
    if meta.node_id != node_id:
        owner = f"{config.metadata_directory} belongs to node {meta.node_id}"
        raise click.ClickException(f"{owner}, but the file has node.id={node_id}")
    return NewController(node_id=meta.node_id, directory_id=meta.directory_id, endpoints=endpoints)


def _config_of(ctx: click.Context, path: str | None, target: Target) -> tuple[NodeConfig, Target]:
    """The new controller's settings and the connection to the cluster; Kafka's tool reads both from one file."""
    import os

    from millbeck.cli.settings import node_config
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.server.config import NodeConfig

    if path is not None:
        return node_config(path, (), os.environ), target
    if "process.roles" not in target.settings:
        raise click.UsageError("no controller given: name its server.properties with --config", ctx)
    kept = {name: value for name, value in target.settings.items() if name.startswith(_OF_CLIENTS)}
    try:
        return NodeConfig(target.settings), replace(target, settings=kept)
    except InvalidConfig as error:
        raise click.ClickException(str(error)) from error
