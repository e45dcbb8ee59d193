"""A seeded run of three registry instances on a cluster of three brokers, driven below HTTP.

Each client registers and deletes schemas under its own subjects, while instances and brokers are killed, paused for
longer than the session, and cut off. A request whose outcome is unknown is repeated until it is answered, so each
client knows the contents of its subjects; now and then a client gives up instead, which leaves an aborted write that
nothing overwrites. The log begins with records of an older release, whose keys have a different
byte form.

The run checks:

- Y1: an id has one text forever, in all answers and in all committed records;
- Y2: in the end the registry has exactly the answered writes, beside those that a client gave up;
- Y3: a read that carries the offset of a write is not older than the write;
- Y4: instances have equal states in the end;
- Y5: readers of uncommitted records, and readers of the compacted log, get the same state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.client.schemas.log_records import KeyType, decode_json, decode_key
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.registry.decision import Decision
from millbeck.registry.deleting import delete_subject
from millbeck.registry.election import ElectionSettings, Identity
from millbeck.registry.errors import (
    RegistryError,
    StoreFailed,
    StoreTimeout,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    UnknownLeader,
)
from millbeck.registry.instance import Instance, InstanceSettings, NotLeader
from millbeck.registry.registering import Checked, Register, register
from millbeck.registry.schema import AVRO, Schema
from millbeck.registry.state import RegistryState, Version
from millbeck.registry.topic import ensure_topic
from millbeck.simulation.cluster import PORT, SimCluster
from millbeck.simulation.environment.node import stream
from millbeck.simulation.histories.history import Anomaly

LIMIT_SECONDS: Final = 600.0
SETTLE_SECONDS: Final = 90.0
TOPIC: Final = "_schemas"
INSTANCES: Final = ("r1", "r2", "r3")
REGISTRY_PORT: Final = 8081
SESSION_MS: Final = 3000
ANSWER_SECONDS: Final = 8.0
OLDER_SUBJECTS: Final = 4
AIM_SECONDS: Final = 0.002
AIM_COUNT: Final = 1000
ONE_TEXT: Final = "Y1 an id has one text"
KEPT: Final = "Y2 answered is kept"
READ_OWN: Final = "Y3 read your writes"
EQUAL: Final = "Y4 instances are equal"
SAME_LOG: Final = "Y5 all readers of the log agree"
GIVE_UP: Final = 0.3
"""How often a client gives up a request whose outcome is unknown."""
LIVENESS: Final = "liveness"
VACUOUS: Final = "vacuous"


class GivenUp(Exception):
    """The client does not repeat a request whose outcome is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryPlan:
    """The values drawn from a seed; printed when a run fails."""

    seed: int
    client_count: int = 3
    request_count: int = 25
    fault_count: int = 5
    over_s: float = 40.0
    broker_faults: bool = True

    @classmethod
    def drawn(cls, seed: int) -> RegistryPlan:
        dice = stream(seed, "registry plan")
        return cls(
            seed=seed,
            client_count=dice.choice((2, 3)),
            request_count=dice.choice((15, 25)),
            fault_count=dice.randint(3, 7),
            over_s=dice.choice((25.0, 40.0)),
            broker_faults=dice.random() < 0.5,
        )


class RegistryRequest(NamedTuple):
    """A client's request to an instance's process: it runs there, and the future gets the answer."""

    run: Callable[[Instance], Any]
    reply: asyncio.Future[Any]


class RegistryRun:
    def __init__(self, plan: RegistryPlan) -> None:
        self.plan = plan
        self.cluster = SimCluster(
            plan.seed,
            settings={
                "transaction.state.log.num.partitions": "2",
                "transaction.state.log.min.isr": "2",
                "group.min.session.timeout.ms": "1000",
                "group.initial.rebalance.delay.ms": "100",
                "broker.session.timeout.ms": "1500",
                "broker.heartbeat.interval.ms": "300",
                "log.cleaner.enable": "false",
            },
        )
        self.answered_count = 0
        self._dice = stream(plan.seed, "registry run")
        self._anomalies: list[Anomaly] = []
        self._texts: dict[int, str] = {}
        self._instances: dict[str, Instance] = {}
        self._requests: dict[str, asyncio.Queue[RegistryRequest]] = {}
        self._bootstrap = ""
        self._held: dict[str, str] = {}
        """The final text of each subject; no entry if it is deleted."""
        self._unknown: dict[str, str] = {}
        """The text that was sent for a subject by a client that gave up."""

    def run(self) -> list[Anomaly]:
        """Run everything and return the anomalies."""
        with self.cluster.world as world:
            world.run(self._whole, limit_s=LIMIT_SECONDS)
        return self._anomalies

    def found(self, kind: str, what: str) -> None:
        self._anomalies.append(Anomaly(kind, what))

    async def _whole(self, environment: Environment) -> None:
        self.cluster.start_all()
        self._bootstrap = ",".join(f"{member.name}:{PORT}" for member in self.cluster.brokers)
        await self._write_older_log(environment)
        for name in INSTANCES:
            self._start(name)
        clients = [asyncio.ensure_future(self._client(index)) for index in range(self.plan.client_count)]
        await self._inject_faults()
        self._heal()
        _, pending = await asyncio.wait(clients, timeout=SETTLE_SECONDS)
        if pending:
            self.found(LIVENESS, f"{len(pending)} clients do not finish")
        for task in pending:
            task.cancel()
        for outcome in await asyncio.gather(*clients, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome
        if not pending:
            await self._check_end(environment)
        if self.answered_count < self.plan.client_count:
            self.found(VACUOUS, f"only {self.answered_count} requests were answered")

    async def _write_older_log(self, environment: Environment) -> None:
        """Write the log of an older release: keys with magic 0 in another order, each record twice."""
        settings = {"bootstrap.servers": self._bootstrap}
        await ensure_topic(environment, settings, TOPIC, replication_factor=3, timeout_s=60.0)
        async with Producer(settings, environment=environment) as producer:
            for index in range(OLDER_SUBJECTS):
                value = (
                    f'{{"subject":"old{index}","version":1,"id":{index + 1},"schema":"old {index}","deleted":false}}'
                ).encode()
                for key in (
                    f'{{"magic":0,"keytype":"SCHEMA","subject":"old{index}","version":1}}',
                    f'{{"keytype":"SCHEMA","subject":"old{index}","version":1,"magic":1}}',
                ):
                    await producer.enqueue(TOPIC, value, key=key.encode(), partition=0)
                self._held[f"old{index}"] = f"old {index}"
                self._texts[index + 1] = f"old {index}"
            await producer.flush()

    # instances

    def _start(self, name: str) -> None:
        self._instances.pop(name, None)
        queue: asyncio.Queue[RegistryRequest] = asyncio.Queue()
        self._requests[name] = queue

        async def main(environment: Environment) -> None:
            settings = InstanceSettings(
                client={"bootstrap.servers": self._bootstrap, "request.timeout.ms": 4000, "client.id": name},
                topic=TOPIC,
                timeout_s=4.0,
                compatibility="NONE",
                election=ElectionSettings(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=500),
            )
            instance = Instance(environment, Identity(name, REGISTRY_PORT), settings)
            await instance.start()
            self._instances[name] = instance
            handling: dict[asyncio.Task[None], None] = {}
            while True:
                request = await queue.get()
                task = asyncio.get_running_loop().create_task(_handle(instance, request))
                handling[task] = None
                task.add_done_callback(lambda done: handling.pop(done, None))

        self.cluster.world.node(name).start(main, may_fail=True)

    async def _submit(self, name: str, decide: Callable[[RegistryState], Decision[Any]]) -> Any:
        """Submit a write to an instance. A request whose client has given up is dropped, because the client repeats
        it."""
        reply: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def decide_in_time(state: RegistryState) -> Decision[Any]:
            if reply.done():
                raise StoreTimeout("the client no longer waits for this")
            return decide(state)

        return await self._ask(name, lambda instance: instance.submit(decide_in_time), reply)

    async def _ask(self, name: str, run: Callable[[Instance], Any], reply: asyncio.Future[Any] | None = None) -> Any:
        """Run a function in an instance's process; raises TimeoutError when it does not answer."""
        if reply is None:
            reply = asyncio.get_running_loop().create_future()
        self._requests[name].put_nowait(RegistryRequest(run, reply))
        return await asyncio.wait_for(reply, ANSWER_SECONDS)

    # clients

    async def _client(self, index: int) -> None:
        dice = stream(self.plan.seed, f"client {index}")
        subjects = [f"s{index}{letter}" for letter in "abc"]
        if index == 0:
            subjects += list(self._held)
        for number in range(self.plan.request_count):
            await asyncio.sleep(dice.uniform(0.0, 2 * self.plan.over_s / self.plan.request_count))
            subject = dice.choice(subjects)
            if subject in self._unknown:
                continue
            if subject in self._held and dice.random() < 0.6:
                await self._delete(dice, subject)
            elif subject not in self._held:
                # Some texts are new, and some are shared, with subjects of other clients too.
                text = f"text {index} {number}" if dice.random() < 0.5 else f"text {dice.randrange(4)}"
                await self._register(dice, subject, text)

    async def _register(self, dice: Any, subject: str, text: str) -> None:
        request = Register(subject=subject, schema=Schema(AVRO, text))

        def decide(state: RegistryState) -> Decision[Version]:
            return register(request, state, Checked(()), default="NONE")

        try:
            version, offset = await self._write(dice, decide, may_give_up=True)
        except GivenUp:
            self._unknown[subject] = text
            return
        self._held[subject] = text
        if self._texts.setdefault(version.schema_id, text) != text:
            self.found(ONE_TEXT, f"{version.schema_id} is {self._texts[version.schema_id]!r}, and given to {text!r}")
        name = dice.choice(INSTANCES)
        try:
            seen = await self._ask(name, lambda instance: _text_when_seen(instance, offset, subject))
        except TimeoutError:
            return
        if seen is not None and seen != [text]:
            self.found(READ_OWN, f"{name} has seen {offset} and has {seen} for {subject}, not {text!r}")

    async def _delete(self, dice: Any, subject: str) -> None:
        for permanent in (False, True):

            def decide(state: RegistryState, permanent: bool = permanent) -> Decision[list[int]]:
                return delete_subject(state, subject, permanent=permanent)

            try:
                await self._write(dice, decide)
            except (SubjectSoftDeleted, SubjectNotFound):
                continue  # by an earlier attempt, whose answer was lost
            except SubjectNotSoftDeleted as error:
                self.found(KEPT, f"the soft delete of {subject} was answered but is lost: {error}")
        del self._held[subject]

    async def _write(
        self, dice: Any, decide: Callable[[RegistryState], Decision[Any]], *, may_give_up: bool = False
    ) -> Any:
        """Repeat a request until it is answered; follows the leader as forwarding does. Raises `GivenUp`."""
        name = dice.choice(INSTANCES)
        while True:
            try:
                answer = await self._submit(name, decide)
            except NotLeader as error:
                name = error.leader.host
            except (StoreTimeout, StoreFailed, UnknownLeader, TimeoutError, ApiError):
                if may_give_up and dice.random() < GIVE_UP:
                    raise GivenUp from None
                name = dice.choice(INSTANCES)
            else:
                self.answered_count += 1
                return answer
            await asyncio.sleep(0.1)

    # faults

    async def _inject_faults(self) -> None:
        pause_s = self.plan.over_s / max(1, self.plan.fault_count)
        for _ in range(self.plan.fault_count):
            await asyncio.sleep(self._dice.uniform(0.3, 1.0) * pause_s)
            if self.plan.broker_faults and self._dice.random() < 0.3:
                await self._fail_broker()
            else:
                await self._stop_instance()
            self._restart()

    async def _stop_instance(self) -> None:
        leading = [name for name, each in self._instances.items() if each.is_leading]
        name = self._dice.choice(leading) if leading and self._dice.random() < 0.7 else self._dice.choice(INSTANCES)
        await self._until_it_writes(name)
        machine, network = self.cluster.world.node(name), self.cluster.world.network
        match self._dice.randrange(4):
            case 3 if leading:
                # The others fall behind, and one of them is elected while it reads on.
                others = [each for each in INSTANCES if each != name]
                network.partition(others, [each.name for each in self.cluster.members])
                await asyncio.sleep(self._dice.uniform(0.5, 1.0) * SESSION_MS / 1000)
                machine.crash()
                network.heal()
                await asyncio.sleep(self._dice.uniform(0.1, 5.0))
            case 0:
                machine.crash()
                await asyncio.sleep(self._dice.uniform(0.1, 5.0))
            case 1:
                machine.pause(self._dice.uniform(0.5, 2.5) * SESSION_MS / 1000)
            case _:
                network.partition([name], [each.name for each in self.cluster.members])
                await asyncio.sleep(self._dice.uniform(0.5, 2.5) * SESSION_MS / 1000)
                network.heal()

    async def _until_it_writes(self, name: str) -> None:
        """Wait for a write in progress, so that the fault interrupts it."""
        for _ in range(AIM_COUNT):
            if (instance := self._instances.get(name)) is not None and instance.is_writing:
                await asyncio.sleep(self._dice.uniform(0.0, 0.01))
                return
            await asyncio.sleep(AIM_SECONDS)

    async def _fail_broker(self) -> None:
        member = self._dice.choice(self.cluster.brokers)
        machine = self.cluster.machine(member)
        if self._dice.random() < 0.5:
            machine.crash()
            await asyncio.sleep(self._dice.uniform(0.1, 3.0))
        else:
            machine.pause(self._dice.uniform(0.5, 4.0))
            await asyncio.sleep(4.0)

    def _restart(self) -> None:
        self.cluster.start_all()
        for name in INSTANCES:
            if not self.cluster.world.node(name).is_running:
                self._start(name)

    def _heal(self) -> None:
        self.cluster.world.network.heal()
        self._restart()

    # the end

    async def _check_end(self, environment: Environment) -> None:
        end = await self._write_last_schema(environment)
        images: dict[str, Any] = {}
        for name in INSTANCES:
            seen = await self._ask(name, lambda instance: instance.has_seen(end, 30.0))
            if not seen:
                self.found(LIVENESS, f"{name} has not read up to {end}")
            images[name] = self._instances[name].state.image()
        if any(image != images[INSTANCES[0]] for image in images.values()):
            self.found(EQUAL, f"{images}")
        state = self._instances[INSTANCES[0]].state
        held = {subject: each[-1].schema.text for subject in state.subjects if (each := state.versions(subject))}
        for subject, text in self._unknown.items():
            if held.pop(subject, text) != text:
                self.found(KEPT, f"{subject} has another text than the one that its client sent, {text!r}")
        if held != self._held:
            self.found(KEPT, f"{sorted(held.items())} instead of {sorted(self._held.items())}")
        await self._check_log(environment, state)

    async def _write_last_schema(self, environment: Environment) -> int:
        """Write one more schema: once it is written, the leader has undone the aborted writes of earlier leaders."""
        dice = stream(self.plan.seed, "the last write")
        loop = asyncio.get_running_loop()
        limit_s = loop.time() + SETTLE_SECONDS
        while sum(each.is_leading for each in self._instances.values()) != 1:
            if loop.time() > limit_s:
                self.found(LIVENESS, "there is no single leader in the end")
                break
            await asyncio.sleep(0.5)
        request = Register(subject="last", schema=Schema(AVRO, "last"))
        version, offset = await self._write(dice, lambda state: register(request, state, Checked(()), default="NONE"))
        self._held["last"] = "last"
        self._texts.setdefault(version.schema_id, "last")
        assert isinstance(offset, int)
        return offset

    async def _check_log(self, environment: Environment, state: RegistryState) -> None:
        committed = await self._read(environment, "read_committed")
        for key, value in committed:
            if value is not None and decode_key(key).keytype is KeyType.SCHEMA:
                members = decode_json(value)
                if self._texts.setdefault(members["id"], members["schema"]) != members["schema"]:
                    self.found(ONE_TEXT, f"{members['id']} in the log is {members['schema']!r}")
        everything = await self._read(environment, "read_uncommitted")
        self._check_image(state, _compacted(committed), "the compacted log")
        self._check_image(state, _compacted(everything), "the log with aborted writes")

    def _check_image(self, state: RegistryState, log: list[tuple[bytes, bytes | None]], what: str) -> None:
        again = RegistryState()
        for key, value in log:
            again.replay(key, value)
        if again.image() != state.image():
            self.found(SAME_LOG, f"{what} gives {again.image()} instead of {state.image()}")

    async def _read(self, environment: Environment, isolation: str) -> list[tuple[bytes, bytes | None]]:
        place = TopicPartition(TOPIC, 0)
        found: list[tuple[bytes, bytes | None]] = []
        settings = {"bootstrap.servers": self._bootstrap, "isolation.level": isolation}
        async with Consumer(settings, environment=environment) as consumer:
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            end = (await consumer.end_offsets([place]))[place]
            while await consumer.position(place) < end:
                records = (await consumer.poll(timeout_s=0.2)).get(place, ())
                found += [(record.key or b"", record.value) for record in records]
        return found


def _compacted(log: list[tuple[bytes, bytes | None]]) -> list[tuple[bytes, bytes | None]]:
    last = {key: index for index, (key, _) in enumerate(log)}
    return [(key, value) for index, (key, value) in enumerate(log) if last[key] == index and value is not None]


async def _handle(instance: Instance, request: RegistryRequest) -> None:
    try:
        answer = await request.run(instance)
    except (RegistryError, NotLeader, ApiError, TimeoutError) as error:
        if not request.reply.done():
            request.reply.set_exception(error.with_traceback(None))
        return
    if not request.reply.done():
        request.reply.set_result(answer)


async def _text_when_seen(instance: Instance, offset: int, subject: str) -> list[str] | None:
    """The subject's texts once the offset has been seen; None if that takes too long."""
    if not await instance.has_seen(offset, 1.0):
        return None
    return [each.schema.text for each in instance.state.versions(subject)]
