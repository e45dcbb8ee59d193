"""The model notices when a rule is not kept: each mutant, by name, is found within a number of runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.controller import alter_partition, broker_changes, eligible_leaders, replica_directories
from millbeck.controller.partition_change import PartitionChange
from millbeck.controller.reassignment import Reassignment
from millbeck.controller.result import Steps
from millbeck.kernel.errors import InvalidRequest
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord
from millbeck.wire.messages.replicas import BrokerState
from tests.model.controller.cluster_model import Broken, ClusterModel, run_operations, run_seed

SEEDS = 40
Patch = Callable[[pytest.MonkeyPatch], None]


def alter_partition_without_the_epoch_compare(patch: pytest.MonkeyPatch) -> None:
    def check(partition: Any, broker_id: int, asked: Any) -> None:
        if broker_id != partition.leader:
            raise InvalidRequest

    patch.setattr(alter_partition, "_check_epochs", check)


def alter_partition_without_broker_epochs(patch: pytest.MonkeyPatch) -> None:
    original = alter_partition._check_eligible

    def check(cluster: Any, partition: Any, members: Any) -> None:
        original(cluster, partition, [BrokerState(member.broker_id, -1) for member in members])

    patch.setattr(alter_partition, "_check_eligible", check)


def fenced_broker_stays_in_isr(patch: pytest.MonkeyPatch) -> None:
    def fenced(image: MetadataImage, rules: Any, broker: Any) -> Steps[list[MetadataRecord]]:
        yield
        return [BrokerRegistrationChangeRecord(broker_id=broker.broker_id, broker_epoch=broker.epoch, fenced=1)]

    patch.setattr(broker_changes, "fenced", fenced)


def fenced_broker_may_come_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alter_partition, "_check_eligible", lambda cluster, partition, members: None)


def lost_directory_stays_in_isr(patch: pytest.MonkeyPatch) -> None:
    original = broker_changes.records_for_offline_directories

    def lost(image: MetadataImage, rules: Any, broker: Any, offline: Any) -> Steps[list[MetadataRecord]]:
        records = yield from original(image, rules, broker, offline)
        return [record for record in records if isinstance(record, BrokerRegistrationChangeRecord)]

    patch.setattr(broker_changes, "records_for_offline_directories", lost)


def assigned_to_a_lost_directory_and_in_sync(patch: pytest.MonkeyPatch) -> None:
    original = replica_directories._assigned

    def assigned(elections: Any, topic_id: bytes, index: int, broker_id: int, directory: bytes) -> Any:
        record = original(elections, topic_id, index, broker_id, directory)
        if record is not None:
            record.isr = None
        return record

    patch.setattr(replica_directories, "_assigned", assigned)


def unclean_shutdown_ignored_by_elr(patch: pytest.MonkeyPatch) -> None:
    original = broker_changes.restarted

    def restarted(image: MetadataImage, rules: Any, broker_id: int, *, is_clean: bool) -> Steps[list[MetadataRecord]]:
        return original(image, rules, broker_id, is_clean=True)

    patch.setattr(broker_changes, "restarted", restarted)


def eligible_by_an_old_number(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(eligible_leaders, "records_for_option", lambda image, resource, changes: [])


def eligible_although_enough_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    def eligible(change: PartitionChange) -> tuple[int, ...]:
        partition = change.partition
        return tuple(
            replica
            for replica in dict.fromkeys(partition.eligible_leader_replicas + partition.isr)
            if replica not in change.isr and replica != change.unclean_shutdown and replica in change.replicas
        )

    patch.setattr(PartitionChange, "_eligible", eligible)


def leader_that_is_not_alive(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionChange, "_may_lead", lambda change, replica: True)


def unclean_election_that_nobody_allowed(patch: pytest.MonkeyPatch) -> None:
    original = PartitionChange._elected

    def elected(change: PartitionChange, eligible: tuple[int, ...]) -> tuple[int, bool]:
        leader, is_unclean = original(change, eligible)
        if leader == -1:
            leader = next((replica for replica in change.replicas if change._may_lead(replica)), -1)
            if leader != -1:
                change.isr = (leader,)
        return leader, is_unclean

    patch.setattr(PartitionChange, "_elected", elected)


def move_completed_too_soon(patch: pytest.MonkeyPatch) -> None:
    def completed(move: Any, isr: tuple[int, ...]) -> Any:
        staying = tuple(replica for replica in isr if replica not in move.removing) or move.target
        return (move.target, staying) if move.removing or move.adding else None

    patch.setattr(Reassignment, "completed", completed)


MUTANTS: tuple[Patch, ...] = (
    alter_partition_without_the_epoch_compare,
    fenced_broker_stays_in_isr,
    fenced_broker_may_come_in,
    lost_directory_stays_in_isr,
    assigned_to_a_lost_directory_and_in_sync,
    unclean_shutdown_ignored_by_elr,
    eligible_by_an_old_number,
    eligible_although_enough_are_in_sync,
    leader_that_is_not_alive,
    unclean_election_that_nobody_allowed,
    move_completed_too_soon,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_found(mutant: Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    for seed in range(SEEDS):
        try:
            run_seed(seed, step_count=250, allows_unclean=seed % 2 == 0)
        except Broken:
            return
    pytest.fail(f"{mutant.__name__} survived {SEEDS} runs")


RESTARTED_WHILE_AWAITED = [
    ("ask_for_isr", 1, 0b011),
    ("deliver", 0, 1),
    ("produce", 1, 2),
    ("replicate", 1, 1),
    ("replicate", 1, 2),
    ("ask_for_isr", 1, 0b111),
    ("come_back", 3, 0),
    ("deliver", 0, 1),
]
"""Broker 3 has caught up; before its leader's request arrives it has lost everything, and is alive again (KIP-903)."""


def test_another_process_is_not_counted_in_for_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ClusterModel()
    run_operations(model, RESTARTED_WHILE_AWAITED)
    assert model.image.topics.by_name["safe"].partitions[0].isr == (1, 2)
    alter_partition_without_broker_epochs(monkeypatch)
    with pytest.raises(Broken, match="3 counts"):
        run_operations(ClusterModel(), RESTARTED_WHILE_AWAITED)
