"""A group whose members use both protocols, under lost answers, failed writes, timeouts and restarts.

After every step, whatever the group's protocol is at the moment:
- G1 of the members that the group has, one at most thinks that it has a partition;
- G2 a commit with an epoch or generation that is not the member's is refused;
- G4 the epochs of a consumer group do not go back, and its target is never ahead of it;
- what is in memory is what the log says.
In the end everybody behaves: the group settles, and every partition is somebody's (G5).
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from struct import pack
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.consumer import payloads
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.kernel import errors
from millbeck.kernel.errors import NotEnoughReplicas

_SPEC = spec_from_file_location(
    "coordinator_world_for_consumer_model", Path(__file__).parents[2] / "unit" / "coordinator" / "world.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
worlds: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(worlds)

DELAYS_MS = [0, 100, 1000, 3000, 9000, 46_000]
REBALANCE_MS = 20_000
NOBODY = (errors.UnknownMemberId.code, errors.FencedMemberEpoch.code, errors.IllegalGeneration.code)


def subscription(owned: set[int]) -> bytes:
    held = pack(">ih", 1, 1) + b"t" + pack(">i", len(owned)) + b"".join(pack(">i", each) for each in sorted(owned))
    return pack(">hi", 1, 1) + pack(">h", 1) + b"t" + pack(">i", -1) + held


class Client:
    """A member as it sees itself."""

    def __init__(self, number: int) -> None:
        self.member_id = f"m{number}"
        self.epoch = 0
        self.owned: set[int] = set()
        self.given: set[int] = set()
        self.uses_classic_protocol = False
        self.must_say_all = False
        """An answer was lost, and what was in it is told again only to who says everything."""

    def start_over(self) -> None:
        self.epoch = 0
        self.owned = set()
        self.given = set()

    def obey(self) -> None:
        self.owned = set(self.given)

    def take(self, outcome: Any) -> None:
        """The answer to a heartbeat."""
        if outcome.code in NOBODY:
            self.start_over()
        elif outcome.code == 0:
            self.must_say_all = False
            self.epoch = outcome.response.member_epoch
            found = outcome.response.assignment
            if found is not None:
                self.given = {each for topic in found.topic_partitions for each in topic.partitions}
                self.owned |= self.given

    def beat(self, world: Any) -> Any:
        if self.epoch == 0:
            return world.beat(self.member_id, 0, topics=["t"], owned={}, rebalance_ms=REBALANCE_MS)
        everything = {"topics": ["t"], "rebalance_ms": REBALANCE_MS} if self.must_say_all else {}
        owned = {"t": sorted(self.owned)} if self.owned else {}
        return world.beat(self.member_id, self.epoch, owned=owned, **everything)


class ClassicClient(Client):
    """An eager or a cooperative one; it takes part in classic rebalances too."""

    def __init__(self, number: int, is_eager: bool) -> None:
        super().__init__(number)
        self.member_id = ""
        self.is_eager = is_eager
        self.uses_classic_protocol = True
        self.joining: Any = None
        self.syncing: Any = None

    def start_over(self) -> None:
        super().start_over()
        self.epoch = -1
        self.member_id = ""
        self.joining = self.syncing = None

    def step(self, world: Any) -> None:
        """The next thing such a client does."""
        if self.joining is not None:
            self._finish_join(world)
        elif self.syncing is not None:
            self._finish_sync(world)
        elif self.member_id == "" or self.epoch <= 0:
            self._join(world)
        else:
            code = world.heartbeat(self.member_id, self.epoch).code
            if code in NOBODY:
                self.start_over()
            elif code == errors.RebalanceInProgress.code:
                self._join(world)

    def _join(self, world: Any) -> None:
        # In a classic group nobody but the leader could say who may keep what; these give up everything there.
        if self.is_eager or not isinstance(world.group(), ConsumerGroup):
            self.owned = set()
        name = "range" if self.is_eager else "cooperative-sticky"
        self.joining = world.join(
            self.member_id,
            protocols={"shared": subscription(self.owned), name: subscription(self.owned)},
            session_ms=10_000,
            rebalance_ms=REBALANCE_MS,
        )
        if self.joining.is_done:
            self._finish_join(world)

    def _finish_join(self, world: Any) -> None:
        joined = self.joining
        if not joined.is_done:
            return
        self.joining = None
        if joined.code_name == "MEMBER_ID_REQUIRED":
            self.member_id = joined.response.member_id
            self._join(world)
        elif joined.code == 0:
            self.member_id, self.epoch = joined.response.member_id, joined.response.generation_id
            others = [each.member_id for each in joined.response.members]
            count = world.topics["t"]
            parts = {
                name: payloads.write_assignment(
                    {worlds.TOPIC_ID: tuple(range(index, count, len(others)))}, 1, world.cluster
                )
                for index, name in enumerate(others)
            }
            self.syncing = world.sync(self.member_id, self.epoch, parts)
            self._finish_sync(world)
        elif joined.code != errors.RebalanceInProgress.code:
            self.start_over()

    def _finish_sync(self, world: Any) -> None:
        synced = self.syncing
        if not synced.is_done:
            return
        self.syncing = None
        if synced.code == 0:
            found = payloads.read_assignment(synced.response.assignment, world.cluster)
            self.given = set(found.get(worlds.TOPIC_ID, ()))
            had_more = bool(self.owned - self.given)
            self.obey()
            if had_more:
                self._join(world)
        elif synced.code == errors.RebalanceInProgress.code:
            self._join(world)
        else:
            self.start_over()


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = worlds.World(topics={"t": 3}, initial_rebalance_delay_ms=0)
        self.clients: list[Client] = []
        self.number = 0
        self.epochs = (0, 0)

    def _chosen(self, index: int) -> Client:
        return self.clients[index % len(self.clients)]

    has_clients = precondition(lambda self: bool(self.clients))

    @precondition(lambda self: len(self.clients) < 5)
    @rule(kind=st.sampled_from(["consumer", "consumer", "eager", "cooperative"]))
    def come(self, kind: str) -> None:
        self.number += 1
        client = Client(self.number) if kind == "consumer" else ClassicClient(self.number, kind == "eager")
        if isinstance(client, ClassicClient):
            client.start_over()
        self.clients.append(client)
        self._act(client)

    def _act(self, client: Client) -> None:
        if isinstance(client, ClassicClient):
            client.step(self.world)
        else:
            client.take(client.beat(self.world))

    @has_clients
    @rule(index=st.integers(0, 4))
    def act(self, index: int) -> None:
        self._act(self._chosen(index))

    @has_clients
    @rule(index=st.integers(0, 4))
    def obey(self, index: int) -> None:
        client = self._chosen(index)
        if not isinstance(client, ClassicClient):
            client.obey()

    @has_clients
    @rule(index=st.integers(0, 4))
    def lose_an_answer(self, index: int) -> None:
        client = self._chosen(index)
        if not isinstance(client, ClassicClient):
            client.beat(self.world)
            client.must_say_all = True

    @has_clients
    @rule(index=st.integers(0, 4), says_so=st.booleans())
    def go(self, index: int, says_so: bool) -> None:
        client = self._chosen(index)
        self.clients.remove(client)
        if not says_so or client.epoch <= 0:
            return
        if isinstance(client, ClassicClient):
            self.world.leave((client.member_id, None))
        else:
            self.world.beat(client.member_id, -1)

    @has_clients
    @rule(index=st.integers(0, 4), wrong_by=st.sampled_from([-1, 1]))
    def commit_with_a_wrong_epoch(self, index: int, wrong_by: int) -> None:
        client = self._chosen(index)
        if client.epoch > 1:
            group = self.world.group()
            known = None if group is None else group.members.get(client.member_id)
            actual = None if known is None else known.epoch if isinstance(group, ConsumerGroup) else group.generation_id
            claimed = client.epoch + wrong_by
            if claimed != actual:
                # KIP-1251: an older epoch may commit a partition that the member has had since then or longer.
                is_allowed = False
                if isinstance(group, ConsumerGroup) and known is not None:
                    assigned_at = known.assignment_epoch(worlds.TOPIC_ID, 0)
                    is_allowed = assigned_at is not None and assigned_at <= claimed < known.epoch
                outcome = self.world.commit({("t", 0): 1}, member_id=client.member_id, generation=claimed)
                assert (outcome.error is None) == is_allowed

    @rule(delay_ms=st.sampled_from(DELAYS_MS))
    def wait(self, delay_ms: int) -> None:
        self.world.advance(delay_ms)

    @precondition(lambda self: self.world.topics["t"] < 6)
    @rule()
    def grow(self) -> None:
        self.world.set_topics(t=self.world.topics["t"] + 1)

    @has_clients
    @rule(index=st.integers(0, 4))
    def act_on_a_log_that_refuses(self, index: int) -> None:
        client = self._chosen(index)
        if not isinstance(client, ClassicClient):
            self.world.log.refusal = NotEnoughReplicas()
            client.take(client.beat(self.world))
            self.world.log.refusal = None

    @rule()
    def move_the_coordinator(self) -> None:
        before = self._shown()
        self.world = self.world.reload()
        assert self._shown() == before
        for client in self.clients:
            if isinstance(client, ClassicClient):
                client.joining = client.syncing = None

    def _shown(self) -> Any:
        """What is durable of a consumer group."""
        group = self.world.group()
        if not isinstance(group, ConsumerGroup):
            return None
        return (
            group.epoch,
            group.assignment_epoch,
            group.metadata_hash,
            dict(sorted(group.members.items())),
            dict(sorted(group.targets.items())),
            dict(sorted(group._owner_epochs.items())),
        )

    @invariant()
    def a_partition_has_one_owner(self) -> None:
        group = self.world.group()
        owners: dict[int, str] = {}
        for client in self.clients:
            if group is None or client.member_id not in group.members:
                continue
            if isinstance(group, ClassicGroup) and group.generation_id != client.epoch:
                # It was told to rejoin, and gives up everything when it does.
                continue
            for partition in client.owned:
                assert partition not in owners, f"{partition} is {owners[partition]}'s and {client.member_id}'s"
                owners[partition] = client.member_id

    @invariant()
    def epochs_only_grow(self) -> None:
        group = self.world.group()
        if not isinstance(group, ConsumerGroup):
            self.epochs = (0, 0)
            return
        now = (group.epoch, group.assignment_epoch)
        assert now[0] >= self.epochs[0]
        assert now[1] >= self.epochs[1]
        assert now[1] <= now[0]
        self.epochs = now

    def teardown(self) -> None:
        if not self.clients:
            return
        for _ in range(80):
            for client in self.clients:
                self._act(client)
                if not isinstance(client, ClassicClient):
                    client.obey()
            self.world.advance(1000)
            self.a_partition_has_one_owner()
        owned = sorted(partition for client in self.clients for partition in client.owned)
        assert owned == list(range(self.world.topics["t"])), f"{self.world.state()}: {owned}"
        assert self.world.state() == "Stable"


ConsumerGroupMachine.TestCase.settings = settings(
    max_examples=25,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
TestConsumerGroup = ConsumerGroupMachine.TestCase
