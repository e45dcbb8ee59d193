"""Transactional ids under random producers, delayed and repeated requests, failed writes and restarts.

Markers go into model partitions that are real producer states, some of them late. After every step and in the end:
- T4 a marker carries the decision that is in the committed log, and is accepted where its transaction is open;
- T5 what a producer is told to be fenced from, it cannot touch: epochs only go up;
- T6 an end that is sent again never ends a later transaction;
- T7 states follow each other as they may, and a decision is never reversed;
- what is in memory is what the log says, whenever the shard is loaded anew.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.records import decode
from millbeck.coordinator.transaction.status import TransactionState, is_valid_transition
from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch

UNIT = Path(__file__).parents[2] / "unit" / "coordinator"


def _load(name: str, path: Path) -> Any:
    spec = spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WORLD = _load("coordinator_world_for_transactions", UNIT / "world.py")
STAGE = _load("transaction_stage_for_model", UNIT / "transaction" / "stage.py")
PLACES = [TopicPartition("t", index) for index in range(2)]
NAMES = ("a", "b")


class TransactionMachine(RuleBasedStateMachine):
    @initialize(version=st.sampled_from((0, 1, 2, 3)))
    def start(self, version: int) -> None:
        self.stage = STAGE.Stage(WORLD, version=version)
        self.version = version
        self.producers: dict[str, list[tuple[int, int]]] = {name: [] for name in NAMES}
        self.ends: list[tuple[str, tuple[int, int], bool]] = []
        self.epochs: dict[int, int] = {}
        self.unsent: list[Markers] = []

    def _collect(self) -> None:
        self.unsent += self.stage.sent
        self.stage.sent = []
        for markers in self.unsent:
            known = self.epochs.get(markers.producer_id, -1)
            assert markers.producer_epoch >= known or markers.producer_id not in self.epochs

    @rule(name=st.sampled_from(NAMES), keeps=st.booleans())
    def init(self, name: str, keeps: bool) -> None:
        expected = self.producers[name][-1] if keeps and self.producers[name] else None
        outcome = self.stage.init(name, expected)
        self._collect()
        if outcome.error is None and outcome.response.error_code == 0:
            producer = outcome.response[:2]
            assert producer[1] >= self.epochs.get(producer[0], 0)
            self.epochs[producer[0]] = producer[1]
            self.producers[name].append(producer)

    @rule(name=st.sampled_from(NAMES))
    def keep(self, name: str) -> None:
        """What is open stays open, whoever had it is fenced, and the answer says whose it is (KIP-939)."""
        if self.version < 3 or not self.producers[name]:
            return
        before = self.stage.of(name)
        outcome = self.stage.init(name, keeps_prepared=True)
        self._collect()
        if outcome.error is not None:
            assert before.status.is_prepared
            return
        answer, after = outcome.response, self.stage.of(name)
        assert answer[1] > self.epochs.get(answer[0], -1)
        self.epochs[answer[0]] = answer[1]
        self.producers[name].append(answer[:2])
        ongoing = (answer.ongoing_producer_id, answer.ongoing_producer_epoch)
        if before.status is TransactionState.ONGOING:
            assert after.status is TransactionState.ONGOING
            assert ongoing == (before.producer_id, before.producer_epoch) == (after.producer_id, after.producer_epoch)
            assert tuple(after.partitions) == tuple(before.partitions)
        else:
            assert ongoing == (-1, -1)

    @rule(name=st.sampled_from(NAMES), which=st.sampled_from((0, 0, 0, 1)), place=st.sampled_from(PLACES))
    def add(self, name: str, which: int, place: TopicPartition) -> None:
        if not self.producers[name]:
            return
        producer = self.producers[name][-1 - which % len(self.producers[name])]
        known = self.stage.of(name)
        outcome = self.stage.add(name, producer, place)
        if outcome.error is None:
            assert producer == known.client, "only the present producer adds"
            assert not known.is_kept, "nothing is added to what is only to be ended"

    @rule(
        name=st.sampled_from(NAMES),
        which=st.sampled_from((0, 0, 1)),
        is_committed=st.booleans(),
        fails=st.sampled_from((False, False, True)),
    )
    def end(self, name: str, which: int, is_committed: bool, fails: bool) -> None:
        if self.producers[name]:
            producer = self.producers[name][-1 - which % len(self.producers[name])]
            self.ends.append((name, producer, is_committed))
            self._end(*self.ends[-1], fails)

    @rule(name=st.sampled_from(NAMES), place=st.sampled_from(PLACES), is_committed=st.booleans())
    def transact(self, name: str, place: TopicPartition, is_committed: bool) -> None:
        """The usual course of things: whatever is in the way is waited for."""
        while self.unsent:
            self.markers_arrive(0)
        self.init(name, False)
        while self.unsent:
            self.markers_arrive(0)
        if not self.producers[name] or self.stage.of(name).status is TransactionState.ONGOING:
            self.init(name, False)
        self.add(name, 0, place)
        self.end(name, 0, is_committed, False)

    @rule(which=st.integers(0, 20))
    def repeat_an_end(self, which: int) -> None:
        if self.ends:
            self._end(*self.ends[which % len(self.ends)], False)

    def _end(self, name: str, producer: tuple[int, int], is_committed: bool, fails: bool) -> None:
        before = self.stage.of(name)
        outcome = self.stage.end(name, producer, is_committed, commits=not fails)
        if fails and self.stage.log.end_offset > self.stage.log.high_watermark:
            offset = self.stage.log.high_watermark
            self.stage.log.take_back(offset)
            self.stage.host.write_failed(offset, errors.KafkaStorageError(), self.stage.scheduler.now_ms)
            assert self.stage.of(name) == before, "what is not written has not happened"
            assert self.stage.sent == []
            return
        self._collect()
        after = self.stage.of(name)
        if before.status is TransactionState.ONGOING and after.status is not TransactionState.ONGOING:
            assert producer == before.client, "a delayed end touches nothing later"
        if outcome.error is None and self.version >= 2:
            told = outcome.response[:2]
            assert told != producer, "the end brings a new epoch"
            self.epochs[told[0]] = max(told[1], self.epochs.get(told[0], 0))
            if told not in self.producers[name]:
                self.producers[name].append(told)

    @rule(which=st.integers(0, 5))
    def markers_arrive(self, which: int) -> None:
        if self.unsent:
            markers = self.unsent.pop(which % len(self.unsent))
            self.stage.run(lambda shard: shard.complete(markers, self.stage.scheduler.now_ms))

    @rule(delay_ms=st.sampled_from((1, 11_000, 80_000)))
    def time_passes(self, delay_ms: int) -> None:
        self.stage.advance(delay_ms)
        self._collect()

    @rule()
    def restart(self) -> None:
        before = {each.transactional_id: _durable(each) for each in self.stage.host.shard.transactions()}
        self.stage = self.stage.reload()
        self.unsent = []
        self._collect()
        after = {each.transactional_id: _durable(each) for each in self.stage.host.shard.transactions()}
        assert after == before
        prepared = {name for name, each in after.items() if each[0].is_prepared}
        assert {markers.transactional_id for markers in self.unsent} == prepared

    @invariant()
    def the_log_tells_a_possible_story(self) -> None:
        if not hasattr(self, "stage"):
            return
        states: dict[str, TransactionState] = {}
        for data in self.stage.log.batches:
            for record in batch.records_of(data):
                found = decode(record.key or b"", record.value)
                assert found is not None
                if found.transaction is None:
                    states.pop(found.transactional_id, None)
                    continue
                before = states.get(found.transactional_id)
                assert before is None or is_valid_transition(before, found.transaction.status)
                states[found.transactional_id] = found.transaction.status


def _durable(transaction: Any) -> tuple[Any, ...]:
    return (
        transaction.status,
        transaction.producer_id,
        transaction.producer_epoch,
        tuple(transaction.partitions),
        transaction.timeout_ms,
        transaction.client,
    )


TransactionMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestTransactions = TransactionMachine.TestCase
