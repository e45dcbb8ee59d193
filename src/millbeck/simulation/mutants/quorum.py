"""Mistakes in the metadata quorum and the controller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millbeck.controller import alter_partition, broker_changes
from millbeck.controller.partition_change import PartitionChange
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, ConfigRecord, MetadataRecord
from millbeck.raft import electing, leading
from millbeck.raft.log_view import end_of
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import NOBODY, VoteAsk
from millbeck.raft.quorum_state import FILE_NAME
from millbeck.raft.roles import Election, Following, Leading, Unattached
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.quorum import QuorumDriver
from millbeck.storage.atomic_file import write_file
from millbeck.testing.mutants.patching import Patch


def vote_not_durable(patch: Patch) -> None:
    def write(files: Any, directory: str, state: Any) -> None:
        path = f"{directory}/{FILE_NAME}"
        # Whole or not at all: without the directory's sync the old file may be back after a power cut.
        write_file(files, path + ".tmp", state.to_text().encode(), sync=True)
        files.rename(path + ".tmp", path)

    patch.replace(metadata_files, "write_quorum_state", write)


def two_votes_in_one_epoch(patch: Patch) -> None:
    def would_grant(machine: QuorumMachine, ask: VoteAsk) -> bool:
        role = machine.role_state
        if ask.is_pre_vote:
            is_free = not isinstance(role, Leading) and not (isinstance(role, Following) and role.has_fetched)
            return is_free and ask.log_end >= end_of(machine.log)
        return ask.log_end >= end_of(machine.log)

    def on_vote_asked(machine: QuorumMachine, token: int, ask: VoteAsk) -> None:
        if not ask.is_pre_vote and ask.epoch == machine.epoch and isinstance(machine.role_state, Unattached | Election):
            # It has forgotten whom it voted for.
            machine.state = _without_vote(machine) if machine.voted != NOBODY else machine.state
        before(machine, token, ask)

    patch.replace(electing, "_would_grant", would_grant)
    before = patch.replace(electing, "on_vote_asked", on_vote_asked)


def _without_vote(machine: QuorumMachine) -> Any:
    machine.role_state = Unattached(machine.now_ms + machine.draw_election_ms(), machine.now_ms)
    return replace(machine.state, voted_id=-1)


def leads_again_in_the_same_epoch(patch: Patch) -> None:
    def on_started(machine: QuorumMachine) -> None:
        if machine.state.leader_id == machine.node_id and not machine.history.latest.is_only(machine.key):
            leading.begin(machine, (machine.node_id,))
        else:
            before(machine)

    before = patch.replace(QuorumMachine, "_on_started", on_started)


def commit_by_count_of_an_old_epoch(patch: Patch) -> None:
    def advance(machine: QuorumMachine, role: Leading) -> None:
        start, role.epoch_start_offset = role.epoch_start_offset, -1
        try:
            before(machine, role)
        finally:
            role.epoch_start_offset = start

    before = patch.replace(leading, "advance_high_watermark", advance)


def reply_before_metadata_commit(patch: Patch) -> None:
    async def wait(driver: QuorumDriver, end_offset: int) -> None:
        """At once."""

    patch.replace(QuorumDriver, "_wait_committed", wait)


def snapshot_without_settings(patch: Patch) -> None:
    def records(image: MetadataImage) -> Any:
        return (record for record in before(image) if not isinstance(record, ConfigRecord))

    before = patch.replace(MetadataImage, "records", records)


def alter_partition_without_epochs(patch: Patch) -> None:
    patch.replace(alter_partition, "_check_epochs", lambda partition, broker_id, asked: None)


def fenced_broker_stays_in_isr(patch: Patch) -> None:
    def fenced(image: MetadataImage, rules: Any, broker: Any, **_: Any) -> list[MetadataRecord]:
        return [
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=broker_changes.FENCE
            )
        ]

    patch.replace(broker_changes, "fenced", fenced)
    if hasattr(broker_changes, "partly_fenced"):
        patch.replace(broker_changes, "partly_fenced", fenced)


def unclean_shutdown_ignored_by_elr(patch: Patch) -> None:
    """What the broker may have lost is not asked for: it stays eligible."""

    def eligible(change: PartitionChange) -> tuple[int, ...]:
        unclean, change.unclean_shutdown = change.unclean_shutdown, None
        try:
            return tuple(before(change))
        finally:
            change.unclean_shutdown = unclean

    before = patch.replace(PartitionChange, "_eligible", eligible)
