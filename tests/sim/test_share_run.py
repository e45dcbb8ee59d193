"""A share group on three nodes: members settle, forget and die, leaders and coordinators die, and S1 to S6 hold.

And the harness is not blind: each mutant is caught.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.share.partition.changes import PartitionWrite, StateTransition
from millbeck.coordinator.share.partition.share_partition import SharePartition
from millbeck.coordinator.share.partition.window import InFlightBatch
from millbeck.coordinator.share.shard import ShareKey, ShareShard, ShareState, StateWrite
from millbeck.coordinator.share.states import AcknowledgeType, RecordState
from millbeck.server.network.broker_connections import BrokerConnections
from millbeck.server.share import dead_letters
from millbeck.server.share.partition_leader import SharePartitionLeader
from millbeck.server.share.settings import ShareGroupSettings
from millbeck.simulation.histories.share_history import (
    ACCEPTED_TWICE,
    FINAL_REOPENED,
    LETTER_MISSING,
    LETTER_OF_ACCEPTED,
    NEVER_DRAINED,
    SKIPPED,
    TOO_MANY_DELIVERIES,
)
from millbeck.simulation.runs.share_run import SharePlan, ShareRun
from millbeck.simulation.workloads.share_members import ShareMemberBehaviour
from millbeck.wire.messages.produce import ProduceResponse, TopicProduceResponse


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_share_groups_keep_their_promises(share_seed: int) -> None:
    plan = SharePlan.drawn(share_seed)
    anomalies = ShareRun(plan).run()
    assert not anomalies, f"make sim SEED={share_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = ShareRun(SharePlan.drawn(10))
        run.run()
        digests.append(run.cluster.world.trace.digest())
    assert digests[0] == digests[1]


def locks_do_not_run_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "expire", lambda self, now_ms: StateTransition([], is_applied=True))
    patch.setattr(SharePartition, "release", lambda self, member_id: StateTransition([]))


def what_is_final_is_given_out_again(patch: pytest.MonkeyPatch) -> None:
    put = SharePartition.put

    def reopened(self: SharePartition, run: InFlightBatch, state: RecordState) -> None:
        put(self, run, RecordState.AVAILABLE if state is RecordState.ACKNOWLEDGED and run.first % 7 == 3 else state)

    patch.setattr(SharePartition, "put", reopened)


def the_limit_of_deliveries_is_not_heard_of(patch: pytest.MonkeyPatch) -> None:
    applied = SharePartitionLeader.apply_settings

    def deaf(self: SharePartitionLeader, settings: ShareGroupSettings) -> None:
        applied(self, replace(settings, delivery_count_limit=10))

    patch.setattr(SharePartitionLeader, "apply_settings", deaf)


def the_start_passes_what_is_held(patch: pytest.MonkeyPatch) -> None:
    planned = SharePartition.build_write

    def hasty(self: SharePartition, changes: Sequence[StateTransition]) -> PartitionWrite:
        write = planned(self, changes)
        return write._replace(start_offset=self.end_offset + 1, batches=[])

    patch.setattr(SharePartition, "build_write", hasty)


def writes_are_answered_and_not_kept(patch: pytest.MonkeyPatch) -> None:
    write = ShareShard.write

    def forgetful(self: ShareShard, key: ShareKey, written: StateWrite, now_ms: int) -> Result[Any, bool]:
        result = write(self, key, written, now_ms)
        return Result(response=True) if written.batches or written.start_offset else result

    patch.setattr(ShareShard, "write", forgetful)


def a_reader_gets_no_batches(patch: pytest.MonkeyPatch) -> None:
    read = ShareShard.read

    def emptied(self: ShareShard, key: ShareKey, leader_epoch: int) -> Result[Any, ShareState]:
        result = read(self, key, leader_epoch)
        assert result.response is not None
        return replace(result, response=replace(result.response, batches=()))

    patch.setattr(ShareShard, "read", emptied)


def the_beginning_is_found_anew(patch: pytest.MonkeyPatch) -> None:
    read = ShareShard.read

    def restarted(self: ShareShard, key: ShareKey, leader_epoch: int) -> Result[Any, ShareState]:
        result = read(self, key, leader_epoch)
        assert result.response is not None
        return replace(result, response=replace(result.response, start_offset=-1, batches=()))

    patch.setattr(ShareShard, "read", restarted)


def what_is_given_up_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "_given_up_state", lambda self: RecordState.ARCHIVED)


def letters_for_other_brokers_are_taken_for_written(patch: pytest.MonkeyPatch) -> None:
    async def hasty(self: BrokerConnections, node_id: int, purpose: str, *asked: Any, **more: Any) -> Any:
        if purpose != dead_letters.PURPOSE:
            return await request(self, node_id, purpose, *asked, **more)
        return ProduceResponse([TopicProduceResponse(partition_responses=[])])

    request = BrokerConnections.request
    patch.setattr(BrokerConnections, "request", hasty)


def the_next_leader_forgets_what_waits_for_its_letter(patch: pytest.MonkeyPatch) -> None:
    """Letters take so long that leaders die meanwhile."""
    made, send = SharePartition.__init__, dead_letters.DeadLetterWriter._send

    def forgetful(self: SharePartition, *details: Any) -> None:
        made(self, *details)
        self.take_dead()

    async def slow(self: Any, *details: Any) -> None:
        await asyncio.sleep(3)
        await send(self, *details)

    patch.setattr(SharePartition, "__init__", forgetful)
    patch.setattr(dead_letters.DeadLetterWriter, "_send", slow)


def what_is_accepted_gets_a_letter(patch: pytest.MonkeyPatch) -> None:
    after = SharePartition._state_after

    def confused(self: SharePartition, kind: AcknowledgeType) -> RecordState:
        return after(self, AcknowledgeType.REJECT if kind is AcknowledgeType.ACCEPT else kind)

    patch.setattr(SharePartition, "_state_after", confused)


MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], tuple[str, ...], int]] = {
    each.__name__: (each, kinds, seed)
    for each, kinds, seed in (
        (locks_do_not_run_out, (NEVER_DRAINED,), 0),
        (what_is_final_is_given_out_again, (FINAL_REOPENED, ACCEPTED_TWICE), 0),
        (the_limit_of_deliveries_is_not_heard_of, (TOO_MANY_DELIVERIES,), 2),
        (the_start_passes_what_is_held, (SKIPPED,), 0),
        (writes_are_answered_and_not_kept, (FINAL_REOPENED, ACCEPTED_TWICE, NEVER_DRAINED), 0),
        (a_reader_gets_no_batches, (FINAL_REOPENED, ACCEPTED_TWICE), 3),
        (the_beginning_is_found_anew, (FINAL_REOPENED, ACCEPTED_TWICE), 0),
    )
}
DEAD_LETTER_MUTANTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    each.__name__: (each, kind)
    for each, kind in (
        (what_is_given_up_is_over_at_once, LETTER_MISSING),
        (letters_for_other_brokers_are_taken_for_written, LETTER_MISSING),
        (the_next_leader_forgets_what_waits_for_its_letter, NEVER_DRAINED),
        (what_is_accepted_gets_a_letter, LETTER_OF_ACCEPTED),
    )
}
"""Each with what finds it, and a seed that shows it."""


@pytest.mark.parametrize(("mutate", "kinds", "seed_of_it"), MUTANTS.values(), ids=MUTANTS.keys())
def test_a_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    kinds: tuple[str, ...],
    seed_of_it: int,
) -> None:
    mutate(monkeypatch)
    found = [anomaly.kind for anomaly in ShareRun(SharePlan.drawn(seed_of_it)).run()]
    assert any(kind in found for kind in kinds), found


def _with_dead_letters(seed: int) -> SharePlan:
    behaviour = ShareMemberBehaviour(release=0.1, reject=0.1, forget=0.1, die=0.05, leave=0.05)
    return replace(
        SharePlan.drawn(seed),
        has_dead_letters=True,
        behaviour=behaviour,
        faults=("crash",),
        fault_count=3,
        partition_count=3,
    )


def test_what_a_group_gives_up_stands_in_its_dead_letter_topic() -> None:
    run = ShareRun(_with_dead_letters(3))
    assert run.run() == []
    assert run.history.letter_count > 5


@pytest.mark.parametrize(("mutate", "kind"), DEAD_LETTER_MUTANTS.values(), ids=DEAD_LETTER_MUTANTS.keys())
def test_a_mutant_of_dead_letters_is_caught(
    monkeypatch: pytest.MonkeyPatch, mutate: Callable[[pytest.MonkeyPatch], None], kind: str
) -> None:
    mutate(monkeypatch)
    found = [anomaly.kind for anomaly in ShareRun(_with_dead_letters(3)).run()]
    assert kind in found, found
