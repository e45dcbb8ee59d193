"""A classic group under random clients, timeouts, failed writes and restarts.

After every step the group is consistent in itself, and what it holds in memory is what its log says. Over the whole
history:
- G1 in a generation a partition is granted to one owner at most (a static member that takes over its own place is the
  same owner);
- G2 a commit that names a generation is accepted from members of the present one only;
- G3 what is fetched is the last commit in the committed log, and every acknowledged commit is in that log.
In the end everybody falls silent: every request is answered and the group is empty.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode,
)
from millbeck.kernel import errors
from millbeck.records import batch

_SPEC = spec_from_file_location(
    "coordinator_world_for_model", Path(__file__).parents[2] / "unit" / "coordinator" / "world.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
worlds: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(worlds)

PLACES = [("t", 0), ("t", 1), ("u", 0)]
INSTANCES = [None, None, None, "i1", "i2"]
PROTOCOLS = [{"range": b"1"}, {"range": b"2", "sticky": b"1"}, {"sticky": b"1", "range": b"1"}]
DELAYS_MS = [0, 1, 500, 3000, 9000, 31_000]


class Client:
    """A member as it sees itself: what it was told last."""

    def __init__(self, name: str, instance: str | None) -> None:
        self.name = name
        self.instance = instance
        self.member_id = ""
        self.generation = -1
        self.leads: list[str] = []
        self.waits_for: Any = None
        self.asked_generation = -1
        self.step = "join"

    def rejoins(self, *, forgets: bool) -> None:
        self.step = "join"
        if forgets:
            self.member_id = ""

    @property
    def identity(self) -> str:
        return self.instance or self.member_id


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = worlds.World(initial_rebalance_delay_ms=1000, size_max=3)
        self.clients: list[Client] = []
        self.open_requests: list[Any] = []
        self.grants: dict[int, dict[bytes, str]] = {}
        self.commits: list[tuple[Any, tuple[str, int], int]] = []
        self.sent_count = 0

    @initialize(count=st.integers(2, 4), data=st.data())
    def arrive(self, count: int, data: st.DataObject) -> None:
        self.clients = [Client(f"c{index}", data.draw(st.sampled_from(INSTANCES))) for index in range(count)]

    # Clients that do what clients do

    @rule(index=st.integers(0, 3))
    def proceed(self, index: int) -> None:
        """The next step of a well-behaved client."""
        client = self.clients[index % len(self.clients)]
        self._hear(client)
        if client.waits_for is not None:
            return
        if client.step == "join":
            self.join(index, PROTOCOLS[0], False, False)
        elif client.step == "sync":
            self.sync(index, 0)
        else:
            outcome = self.world.heartbeat(client.member_id, client.generation, instance=client.instance)
            self._ask(outcome)
            if outcome.is_done and outcome.code_name != "NONE":
                client.rejoins(forgets=outcome.code_name != "REBALANCE_IN_PROGRESS")

    @rule()
    def everybody_proceeds(self) -> None:
        """Long enough for a group to become stable, if nothing is in the way."""
        for _ in range(4):
            for index in range(len(self.clients)):
                self.proceed(index)
            self.world.advance(1000)
            self.clients_hear_their_answers()

    # Requests

    def _ask(self, outcome: Any) -> Any:
        self.open_requests.append(outcome)
        return outcome

    @rule(index=st.integers(0, 3), protocols=st.sampled_from(PROTOCOLS), forgets=st.booleans(), old=st.booleans())
    def join(self, index: int, protocols: dict[str, bytes], forgets: bool, old: bool) -> None:
        client = self.clients[index % len(self.clients)]
        if forgets:
            client.member_id = ""
        client.waits_for = ("join", self._ask(self._join(client, protocols, 3 if old and not client.instance else 9)))
        self._hear(client)

    def _join(self, client: Client, protocols: dict[str, bytes], version: int) -> Any:
        return self.world.join(
            client.member_id,
            instance=client.instance,
            protocols=protocols,
            client=client.name,
            version=version,
            session_ms=10_000,
            rebalance_ms=30_000,
        )

    @rule(index=st.integers(0, 3), skips=st.integers(0, 5))
    def sync(self, index: int, skips: int) -> None:
        client = self.clients[index % len(self.clients)]
        # The leader deals out as many partitions as there are members, and sometimes forgets one of them.
        assignments = {
            member: f"p{number}".encode() for number, member in enumerate(client.leads) if number != skips - 1
        }
        client.asked_generation = client.generation
        outcome = self.world.sync(client.member_id, client.generation, assignments, instance=client.instance)
        client.waits_for = ("sync", self._ask(outcome))
        self._hear(client)

    @rule(index=st.integers(0, 3))
    def heartbeat(self, index: int) -> None:
        client = self.clients[index % len(self.clients)]
        self._ask(self.world.heartbeat(client.member_id, client.generation, instance=client.instance))

    @rule(index=st.integers(0, 3))
    def leave(self, index: int) -> None:
        client = self.clients[index % len(self.clients)]
        self._ask(self.world.leave((client.member_id, client.instance)))

    @rule(
        index=st.integers(0, 3), place=st.sampled_from(PLACES), is_admin=st.booleans(), age=st.sampled_from([0, 0, 1])
    )
    def commit(self, index: int, place: tuple[str, int], is_admin: bool, age: int) -> None:
        client = self.clients[index % len(self.clients)]
        self.sent_count += 1
        member_id, generation = ("", -1) if is_admin else (client.member_id, client.generation - age)
        instance = None if is_admin else client.instance
        before = self.world.group()
        may = before is None or before.is_empty if generation < 0 else self._is_current(before, member_id, generation)
        outcome = self.world.commit(
            {place: self.sent_count}, member_id=member_id, generation=generation, instance=instance
        )
        refused = outcome.error is not None
        assert refused or may, "G2"
        self._ask(outcome)
        self.commits.append((outcome, place, self.sent_count))

    def _is_current(self, group: Any, member_id: str, generation: int) -> bool:
        return (
            group is not None
            and member_id in group.members
            and group.generation_id == generation
            and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE)
        )

    # The world

    @rule(delay_ms=st.sampled_from(DELAYS_MS))
    def wait(self, delay_ms: int) -> None:
        self.world.advance(delay_ms)

    @rule(holds=st.booleans())
    def hold_commits(self, holds: bool) -> None:
        self.world.log.holds_commits = holds
        if not holds:
            self.world.commit_log()

    @rule(refuses=st.booleans())
    def refuse_appends(self, refuses: bool) -> None:
        self.world.log.refusal = errors.NotEnoughReplicas() if refuses else None

    @precondition(lambda self: self.world.host.loaded_offset < self.world.log.end_offset)
    @precondition(lambda self: self.world.log.high_watermark < self.world.log.end_offset)
    @rule(data=st.data())
    def take_back(self, data: st.DataObject) -> None:
        log = self.world.log
        # A write that fails takes back what was appended since the shard was loaded, and never what is committed.
        lowest = max(log.high_watermark, self.world.host.loaded_offset)
        starts = [batch.read_header(each).base_offset for each in log.batches]
        offset = data.draw(st.sampled_from([start for start in starts if start >= lowest]))
        self.world.take_back(offset, errors.KafkaStorageError())

    @rule(loses_tail=st.booleans())
    def restart(self, loses_tail: bool) -> None:
        log = self.world.log
        if loses_tail:
            log.take_back(log.high_watermark)
        self.world = self.world.reload()

    # What clients hear

    def _hear(self, client: Client) -> None:
        if client.waits_for is None or not client.waits_for[1].is_done:
            return
        (kind, outcome), client.waits_for = client.waits_for, None
        if outcome.code_name == "MEMBER_ID_REQUIRED":
            client.member_id = outcome.response.member_id
        elif outcome.code_name != "NONE":
            client.rejoins(forgets=outcome.code_name != "REBALANCE_IN_PROGRESS")
        elif kind == "join":
            client.member_id = outcome.response.member_id
            client.generation = outcome.response.generation_id
            client.leads = [member.member_id for member in outcome.response.members]
            client.step = "sync"
        else:
            client.step = "heartbeat"
            if not outcome.response.assignment:
                return
            owners = self.grants.setdefault(client.asked_generation, {})
            owner = owners.setdefault(outcome.response.assignment, client.identity)
            assert owner == client.identity, f"G1: {outcome.response.assignment!r} of {client.asked_generation}"

    # Invariants

    @invariant()
    def clients_hear_their_answers(self) -> None:
        for client in self.clients:
            self._hear(client)

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.world.group()
        if group is None:
            return
        members = group.members
        assert not members.keys() & group.pending_joins.keys()
        assert group.pending_syncs.keys() <= members.keys()
        assert group.static_members == {one.instance_id: name for name, one in members.items() if one.instance_id}
        assert (group.leader_id is None) == (not members)
        assert group.leader_id is None or group.leader_id in members
        counts: dict[str, int] = {}
        for one in members.values():
            for name, _ in one.protocols:
                counts[name] = counts.get(name, 0) + 1
        assert {name: count for name, count in group.protocol_support_counts.items() if count} == counts
        timers = self.world.host._timers
        for name, one in members.items():
            assert one.has_satisfied_heartbeat or ("session", "g", name) in timers
            assert not one.is_awaiting_sync or group.state is GroupState.COMPLETING_REBALANCE
        if group.state is GroupState.EMPTY:
            assert not members
        if group.state is GroupState.PREPARING_REBALANCE:
            assert ("join", "g") in timers
        if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            assert members
            assert group.state is GroupState.STABLE or not any(one.is_awaiting_join for one in members.values())
            assert all(one.metadata(group.protocol_name) is not None for one in members.values())

    @invariant()
    def memory_is_what_the_log_says(self) -> None:
        group_values, offsets = self._fold(self.world.log.end_offset)
        group = self.world.group()
        stored = group_values.get("g")
        assert group is not None or stored is None
        if group is not None and self.world.log.high_watermark == self.world.log.end_offset and stored is not None:
            loaded = ClassicGroup.from_record("g", stored)
            is_written = group.state is GroupState.EMPTY and group.generation_id == stored.generation
            if group.state is GroupState.STABLE or is_written:
                assert self._durable(loaded) == self._durable(group)
        present = {place: value.offset for place, value in self.world.shard._offsets.of_group("g").items()}
        assert present == {place: value for place, (value, _) in offsets.items()}

    def _durable(self, group: ClassicGroup) -> object:
        assignments = {name: member.assignment for name, member in group.members.items()}
        value = group.metadata_record(assignments).value
        assert isinstance(value, GroupMetadataValue)
        value.current_state_timestamp = 0
        return value, group.static_members, group.subscribed_topics

    def _fold(self, end_offset: int) -> tuple[dict[str, GroupMetadataValue], dict[tuple[str, int], tuple[int, int]]]:
        groups: dict[str, GroupMetadataValue] = {}
        offsets: dict[tuple[str, int], tuple[int, int]] = {}
        for data in self.world.log.batches:
            for record in batch.records_of(data):
                if record.offset >= end_offset:
                    continue
                found = decode(record.key or b"", record.value)
                assert found is not None
                if isinstance(found.key, GroupMetadataKey):
                    assert isinstance(found.value, GroupMetadataValue)
                    groups[found.key.group] = found.value
                else:
                    assert isinstance(found.key, OffsetCommitKey)
                    assert isinstance(found.value, OffsetCommitValue)
                    offsets[found.key.topic, found.key.partition] = (found.value.offset, record.offset)
        return groups, offsets

    @invariant()
    def fetches_see_the_committed_log(self) -> None:
        _, offsets = self._fold(self.world.log.high_watermark)
        fetched = self.world.fetched(None)
        assert fetched == {place: value for place, (value, _) in offsets.items()}, "G3"
        for outcome, place, value in self.commits:
            if outcome.response is not None:
                assert fetched[place] >= value, "G3"

    def teardown(self) -> None:
        if not self.clients:
            return
        self.refuse_appends(False)
        self.hold_commits(False)
        self.world.advance(20 * 60 * 1000)
        self.clients_hear_their_answers()
        self.the_group_is_consistent()
        assert all(outcome.is_done for outcome in self.open_requests)
        group = self.world.group()
        assert group is None or (group.is_empty and not group.pending_joins)
        assert self.world.host.deferred_count == 0


# Shrinking takes minutes here; the seed that a failure prints is enough to see it again.
GroupMachine.TestCase.settings = settings(
    max_examples=100,
    stateful_step_count=40,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
TestGroup = GroupMachine.TestCase
