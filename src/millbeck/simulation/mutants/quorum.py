"""Mistakes in the metadata quorum and the controller."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from millbeck.controller import alter_partition, broker_changes
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.partition_change import PartitionChange
from millbeck.controller.result import Steps
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, ConfigRecord, MetadataRecord
from millbeck.raft import elections, leading
from millbeck.raft.log_view import end_of
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import NOBODY, VoteRequest
from millbeck.raft.quorum_state import FILE_NAME
from millbeck.raft.roles import Election, Following, Leading, Unattached
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.quorum_driver import QuorumDriver
from millbeck.simulation.mutants.patching import Patch
from millbeck.storage.atomic_file import write_file


def vote_not_durable(patch: Patch) -> None:
    def write(files: Any, directory: str, state: Any) -> None:
        path = f"{directory}/{FILE_NAME}"
        # Whole or not at all: without the directory's sync the old file may be back after a power cut.
        write_file(files, path + ".tmp", state.to_text().encode(), sync=True)
        files.rename(path + ".tmp", path)

    patch.replace(metadata_files, "write_quorum_state", write)


def two_votes_in_one_epoch(patch: Patch) -> None:
    def would_grant(machine: QuorumMachine, ask: VoteRequest) -> bool:
        role = machine.role_state
        if ask.is_pre_vote:
            is_free = not isinstance(role, Leading) and not (isinstance(role, Following) and role.has_fetched)
            return is_free and ask.log_end >= end_of(machine.log)
        return ask.log_end >= end_of(machine.log)

    def on_vote_asked(machine: QuorumMachine, token: int, ask: VoteRequest) -> None:
        if not ask.is_pre_vote and ask.epoch == machine.epoch and isinstance(machine.role_state, Unattached | Election):
            # The replica does not remember its vote.
            machine.state = _without_vote(machine) if machine.voted != NOBODY else machine.state
        before(machine, token, ask)

    patch.replace(elections, "_would_grant", would_grant)
    before = patch.replace(elections, "on_vote_asked", on_vote_asked)


def _without_vote(machine: QuorumMachine) -> Any:
    machine.role_state = Unattached(machine.now_ms + machine.random_election_timeout_ms(), machine.now_ms)
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
        """Return at once."""

    patch.replace(QuorumDriver, "_wait_committed", wait)


def snapshot_without_settings(patch: Patch) -> None:
    def records(image: MetadataImage) -> Any:
        return (record for record in before(image) if not isinstance(record, ConfigRecord))

    before = patch.replace(MetadataImage, "records", records)


def alter_partition_without_epochs(patch: Patch) -> None:
    patch.replace(alter_partition, "_check_epochs", lambda partition, broker_id, asked: None)


def fenced_broker_stays_in_isr(patch: Patch) -> None:
    def fenced(image: MetadataImage, rules: Any, broker: Any, **_: Any) -> Steps[list[MetadataRecord]]:
        yield
        return [
            BrokerRegistrationChangeRecord(
                broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=broker_changes.FENCE
            )
        ]

    patch.replace(broker_changes, "fenced", fenced)
    if hasattr(broker_changes, "records_for_partial_fencing"):
        patch.replace(broker_changes, "records_for_partial_fencing", fenced)


def heartbeat_counts_when_decided(patch: Patch) -> None:
    """A heartbeat counts and is answered only after the decisions queued before it."""
    patch.replace(BrokerLifecycle, "heartbeat_arrived", lambda lifecycle, request, now_ms: None)
    patch.replace(BrokerLifecycle, "reply_to_unchanged", lambda lifecycle, committed, image, request, now_ms: None)


def unclean_shutdown_ignored_by_elr(patch: Patch) -> None:
    """After an unclean shutdown a broker stays in the eligible leader replicas."""

    def eligible(change: PartitionChange) -> tuple[int, ...]:
        unclean, change.unclean_shutdown = change.unclean_shutdown, None
        try:
            return tuple(before(change))
        finally:
            change.unclean_shutdown = unclean

    before = patch.replace(PartitionChange, "_eligible", eligible)
