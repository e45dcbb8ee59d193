"""A small cluster around the real controller: processes that live and die, logs that grow and are lost, and the rules.

The model has what decisions depend on and nothing else. A broker is a process with an epoch, or none; a replica is the
list of records in its log and how many of them are on disk. A record is a number that is never used again. The high
watermark moves as replication moves it: over everybody in sync, and those whom the leader is about to count in, and
only while enough are. What is below it is committed, and whoever is elected cleanly must have it.

Messages between leaders and the controller take their time: an AlterPartition is made on one image and arrives on a
later one, or twice, or never.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from millbeck.controller import Controller, ControllerOptions, NodeRegistration, OptionRules, Result
from millbeck.controller.result import Steps, finished
from millbeck.kernel.errors import ApiError
from millbeck.kernel.options import OptionSet, Section
from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY, Endpoint, MetadataImage, PartitionRegistration, TopicImage
from millbeck.metadata.image.topics import RECOVERED, RECOVERING
from millbeck.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.nodes import BrokerHeartbeatRequest
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
    AlterPartitionTopic,
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsTopic,
    BrokerState,
    ElectLeadersRequest,
    ElectLeadersTopicPartitions,
    ReassignablePartition,
    ReassignableTopic,
)
from millbeck.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest

BROKERS = (1, 2, 3, 4)
SESSION_TIMEOUT_MS = 9000
IN_FLIGHT_MAX = 6
ELIGIBLE = "eligible.leader.replicas.version"


class Broken(AssertionError):
    """A rule of the cluster does not hold."""


class NoOptions(Section):
    """The model sets nothing on brokers but what topics inherit."""


class Randomness:
    def __init__(self, seed: int) -> None:
        self._generator = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def uuid(self) -> bytes:
        return self._generator.randbytes(16)


@dataclass
class Process:
    """What a broker's machine holds; ``epoch`` is None while no process runs there."""

    broker_id: int
    epoch: int | None = None
    incarnation: int = 0
    closed_under: int = -1
    """The epoch under which the last process ended in good order."""
    lost: dict[bytes, None] = field(default_factory=dict)
    """Directories that failed under the process that runs."""

    @property
    def directories(self) -> tuple[bytes, bytes]:
        return bytes([self.broker_id, 1]) * 8, bytes([self.broker_id, 2]) * 8


@dataclass
class Replica:
    records: list[int] = field(default_factory=list)
    flushed: int = 0
    leader_epoch: int = -1
    """Up to which leader epoch the log agrees with its leader's."""


@dataclass
class Data:
    """What is in a partition's logs, beside what the image says of it."""

    replicas: dict[int, Replica] = field(default_factory=dict)
    committed: list[int] = field(default_factory=list)

    def of(self, broker_id: int) -> Replica:
        return self.replicas.setdefault(broker_id, Replica())


class ClusterModel:
    """Operations take two numbers, which choose; what is not possible now does nothing. `check` follows each."""

    def __init__(self, *, tracks_eligible_leaders: bool = True, allows_unclean: bool = False) -> None:
        rules = OptionRules(
            topic=TOPIC_OPTIONS, broker=OptionSet(NoOptions), group=OptionSet(NoOptions), static={}, node_id=1
        )
        options = ControllerOptions(session_timeout_ms=SESSION_TIMEOUT_MS, rebalance_interval_ms=60_000)
        self.controller = Controller(options=options, rules=rules, randomness=Randomness(1))
        self.tracks = tracks_eligible_leaders
        self.now_ms = 0
        self.image: MetadataImage = EMPTY
        self.processes = {broker_id: Process(broker_id) for broker_id in BROKERS}
        self.data: dict[tuple[bytes, int], Data] = {}
        self.in_flight: list[AlterPartitionRequest] = []
        self.counts: dict[str, int] = {}
        self._next_record = 0
        levels = {"metadata.version": 30} | ({ELIGIBLE: 1} if tracks_eligible_leaders else {})
        self._append([FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()])
        self._append([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="2")])
        self.controller.activate(self.image, now_ms=0)
        for broker_id in BROKERS:
            self.start(broker_id, 0)
            self.beat(broker_id, 0)
        self._create("safe", [[1, 2, 3], [2, 3, 4]])
        self._create("alone", [[3]])
        if allows_unclean:
            self._create("risky", [[4, 1], [1, 2]], ("unclean.leader.election.enable", "true"))

    def _create(self, name: str, assignments: list[list[int]], *options: tuple[str, str]) -> None:
        topic = CreatableTopic(
            name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(index, brokers) for index, brokers in enumerate(assignments)],
        )
        self._submit(lambda image: self.controller.create_topics(image, CreateTopicsRequest(topics=[topic])))
        self._append(
            [ConfigRecord(resource_type=2, resource_name=name, name=key, value=value) for key, value in options]
        )

    # The log.

    def _submit(self, decide: Callable[[MetadataImage], Result[Any] | Steps[Result[Any]]]) -> object:
        """Carry out a decision; the error where it is refused."""
        try:
            decided = decide(self.image)
            result = decided if isinstance(decided, Result) else finished(decided)
        except ApiError as error:
            return error
        self._append(result.records)
        return result.response

    def _append(self, records: list[MetadataRecord]) -> None:
        if not records:
            return
        before = self.image
        self.image, _ = advance(
            before, records, offset=before.offset + len(records), epoch=1, timestamp_ms=before.offset + 1
        )
        for topic, index, partition in self._partitions():
            old_topic = before.topics.by_id.get(topic.topic_id)
            old = None if old_topic is None else old_topic.partitions.get(index)
            if old is not partition:
                self._changed(topic, index, old, partition)

    def _partitions(self) -> list[tuple[TopicImage, int, PartitionRegistration]]:
        return [
            (topic, index, partition)
            for _, topic in sorted(self.image.topics.by_name.items())
            for index, partition in sorted(topic.partitions.items())
        ]

    # Rules of a change.

    def _changed(
        self, topic: TopicImage, index: int, old: PartitionRegistration | None, new: PartitionRegistration
    ) -> None:
        where = f"{topic.name}-{index}: {old} became {new}"
        data = self.data.setdefault((topic.topic_id, index), Data())
        if old is not None:
            if new.partition_epoch <= old.partition_epoch or new.leader_epoch < old.leader_epoch:
                raise Broken(f"an epoch did not rise in {where}")
            if new.leader != old.leader and new.leader_epoch <= old.leader_epoch:
                raise Broken(f"a new leader in an old epoch in {where}")
            grown = [member for member in new.isr if member not in old.isr]
            if any(not self.image.cluster.is_active(member) for member in grown):
                raise Broken(f"somebody who is not active is in sync now in {where}")
        if new.leader != -1 and (old is None or new.leader_epoch != old.leader_epoch):
            self._count("elections")
            self._elected(data, new, where)

    def _elected(self, data: Data, partition: PartitionRegistration, where: str) -> None:
        if not self.image.cluster.is_active(partition.leader):
            raise Broken(f"a leader that is not active in {where}")
        if not self._leads(partition):
            # It has failed and that is not known yet: it leads nobody, and will be found out when it registers.
            return
        log = data.of(partition.leader).records
        if partition.leader_recovery_state == RECOVERING:
            self._count("unclean elections")
            data.committed = log[: len(data.committed)]
        elif self.tracks and log[: len(data.committed)] != data.committed:
            raise Broken(f"committed {data.committed}, and the leader has {log}, in {where}")

    # Rules that always hold.

    def check(self) -> None:
        for topic, index, partition in self._partitions():
            problem = self._problem(topic, partition)
            if problem is not None:
                raise Broken(f"{problem}: {topic.name}-{index} is {partition}")
            self._check_data(topic, index, partition)

    def _problem(self, topic: TopicImage, partition: PartitionRegistration) -> str | None:
        replicas, isr, eligible = partition.replicas, partition.isr, partition.eligible_leader_replicas
        if not replicas or len(set(replicas)) != len(replicas) or len(partition.directories) != len(replicas):
            return "replicas that can not be"
        if len(set(isr)) != len(isr) or not set(isr) <= set(replicas):
            return "in sync is who is no replica"
        if not set(eligible) <= set(replicas):
            return "eligible is who is no replica"
        if set(isr) & set(eligible):
            return "in sync and eligible at once"
        if partition.leader != -1 and partition.leader not in isr:
            return "the leader is not in sync"
        away = [member for member in isr if not self._may_serve(partition, member)]
        if away and (self.tracks or len(isr) > 1):
            return f"{away} can not serve, and are in sync"
        if partition.leader in away:
            return "the leader can not serve"
        if not isr and not self.tracks:
            return "nobody is in sync"
        if eligible and len(isr) >= self.min_isr(topic, partition):
            return "some are eligible although enough are in sync"
        if partition.leader_recovery_state == RECOVERING and len(isr) > 1:
            return "in sync with a leader that recovers"
        if partition.leader == -1 and any(self._may_serve(partition, member) for member in (isr or eligible)):
            return "somebody could lead, and nobody does"
        return None

    def _may_serve(self, partition: PartitionRegistration, broker_id: int) -> bool:
        """As far as the controller knows."""
        cluster = self.image.cluster
        return cluster.is_active(broker_id) and cluster.brokers[broker_id].has_online(partition.directory(broker_id))

    def _check_data(self, topic: TopicImage, index: int, partition: PartitionRegistration) -> None:
        """Whoever is in sync or eligible has all that is committed, unless it has failed and nobody knows yet."""
        if not self.tracks:
            return
        data = self.data[(topic.topic_id, index)]
        for broker_id in (*partition.isr, *partition.eligible_leader_replicas):
            process, broker = self.processes[broker_id], self.image.cluster.brokers.get(broker_id)
            if broker is None or process.epoch != broker.epoch:
                continue
            log = data.of(broker_id).records
            if log[: len(data.committed)] != data.committed:
                raise Broken(f"{broker_id} counts, has {log} and lacks of {data.committed}: {partition}")

    def min_isr(self, topic: TopicImage, partition: PartitionRegistration) -> int:
        text = self.image.configs.of_topic(topic.name).get("min.insync.replicas")
        text = text or self.image.configs.of_all_brokers().get("min.insync.replicas", "1")
        return min(int(text), len(partition.replicas))

    def _count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    # Processes.

    def _process(self, choice: int) -> Process:
        """Any, and half of the time one that a leader is about to count in: that is where failing hurts."""
        awaited = self._awaited() if choice >= 32 else []
        if awaited:
            return self.processes[awaited[choice % len(awaited)]]
        return self.processes[choice if choice in self.processes else BROKERS[choice % len(BROKERS)]]

    def _awaited(self) -> list[int]:
        awaited: dict[int, None] = {}
        for request in self.in_flight:
            asked = request.topics[0].partitions[0]
            partition = self.image.topics.by_id[request.topics[0].topic_id].partitions[asked.partition_index]
            awaited |= {
                member.broker_id: None for member in asked.new_isr_with_epochs if member.broker_id not in partition.isr
            }
        return list(awaited)

    def start(self, a: int, b: int) -> None:
        """A process starts on a machine where none runs, and registers; it may be refused and try again later."""
        process = self._process(a)
        if process.epoch is not None:
            return
        process.incarnation += 1
        registration = NodeRegistration(
            node_id=process.broker_id,
            incarnation_id=bytes([process.broker_id, process.incarnation % 256, process.incarnation // 256])
            + bytes(13),
            endpoints=(Endpoint(listener="PLAINTEXT", host=f"h{process.broker_id}", port=9092),),
            directories=process.directories,
            previous_broker_epoch=process.closed_under,
        )
        epoch = self._submit(lambda image: self.controller.register_broker(image, registration, now_ms=self.now_ms))
        if isinstance(epoch, int):
            process.epoch, process.closed_under, process.lost = epoch, -1, {}
            self._count("registrations")

    def beat(self, a: int, b: int) -> None:
        self._beat(self._process(a), want_shut_down=False, want_fence=b % 8 == 7)

    def shut_down(self, a: int, b: int) -> None:
        """Ask to end; when that is granted the logs are closed in good order."""
        process = self._process(a)
        answer = self._beat(process, want_shut_down=True, want_fence=False)
        if answer:
            for data in self.data.values():
                replica = data.of(process.broker_id)
                replica.flushed = len(replica.records)
            process.closed_under, process.epoch = process.epoch or -1, None
            self._count("clean ends")

    def _beat(self, process: Process, *, want_shut_down: bool, want_fence: bool) -> bool:
        if process.epoch is None:
            return False
        request = BrokerHeartbeatRequest(
            process.broker_id,
            process.epoch,
            self.image.offset,
            want_fence=want_fence,
            want_shut_down=want_shut_down,
            offline_log_dirs=list(process.lost),
        )
        answer = self._submit(lambda image: self.controller.broker_heartbeat(image, request, now_ms=self.now_ms))
        if isinstance(answer, ApiError):
            # Another process has the id by now, or nobody has: this one ends.
            self._fail(process, 0)
            return False
        return bool(getattr(answer, "should_shut_down", False))

    def power_loss(self, a: int, b: int) -> None:
        """The process is gone, and of each log some of what was not on disk."""
        process = self._process(a)
        if process.epoch is not None:
            self._fail(process, b)
            self._count("power losses")

    def _fail(self, process: Process, keeps: int) -> None:
        process.epoch = None
        for data in self.data.values():
            replica = data.of(process.broker_id)
            unsynced = len(replica.records) - replica.flushed
            del replica.records[replica.flushed + (keeps % (unsynced + 1)) :]
            replica.flushed = len(replica.records)

    def time_passes(self, a: int, b: int) -> None:
        """Some brokers are heard from, the others may expire."""
        self.now_ms += (a % 5) * 3000
        for bit, broker_id in enumerate(BROKERS):
            if b >> bit & 1 and a % 5 < 4:
                self._beat(self.processes[broker_id], want_shut_down=False, want_fence=False)
        for _ in range(20):
            if not self._submit(lambda image: self.controller.periodic_task(image, now_ms=self.now_ms)):
                return

    def come_back(self, a: int, b: int) -> None:
        """A machine loses power and is back as soon as its session has ended; the others are heard from meanwhile."""
        process = self._process(a)
        self.power_loss(process.broker_id, b)
        for _ in range(4):
            self.time_passes(1, ~(1 << BROKERS.index(process.broker_id)))
        self.start(process.broker_id, 0)
        self.beat(process.broker_id, 0)

    def new_controller(self, a: int, b: int) -> None:
        self.controller.deactivate()
        self.controller.activate(self.image, now_ms=self.now_ms)

    def assign(self, a: int, b: int) -> None:
        """A broker says in which directory it has put its replicas, whether or not that is still there."""
        process = self._process(a)
        if process.epoch is None:
            return
        directory = process.directories[b % 2]
        topics = [
            AssignReplicasToDirsTopic(topic.topic_id, [AssignReplicasToDirsPartition(index)])
            for topic, index, partition in self._partitions()
            if process.broker_id in partition.replicas and (index + b // 2) % 2
        ]
        request = AssignReplicasToDirsRequest(
            process.broker_id, process.epoch, [AssignReplicasToDirsDirectory(directory, topics)]
        )
        self._submit(lambda image: self.controller.assign_replicas_to_directories(image, request))

    def lose_directory(self, a: int, b: int) -> None:
        """One of a broker's two directories fails, and its next heartbeat tells of it."""
        process = self._process(a)
        if process.epoch is not None and not process.lost:
            process.lost[process.directories[b % 2]] = None
            self._count("lost directories")
            self._beat(process, want_shut_down=False, want_fence=False)

    def unregister(self, a: int, b: int) -> None:
        process = self._process(a)
        if process.epoch is None and b % 4 == 0:
            self._submit(lambda image: self.controller.unregister_broker(image, process.broker_id))

    # Records.

    def _chosen(self, choice: int) -> tuple[TopicImage, int, PartitionRegistration, Data]:
        partitions = self._partitions()
        topic, index, partition = partitions[choice % len(partitions)]
        return topic, index, partition, self.data[(topic.topic_id, index)]

    def _leads(self, partition: PartitionRegistration) -> bool:
        """Whether the process that was elected is the one that runs, and has the log."""
        return partition.leader != -1 and self._serves(partition, partition.leader)

    def _serves(self, partition: PartitionRegistration, broker_id: int) -> bool:
        process, broker = self.processes[broker_id], self.image.cluster.brokers.get(broker_id)
        if broker is None or process.epoch != broker.epoch:
            return False
        return partition.directory(broker_id) not in process.lost

    def produce(self, a: int, b: int) -> None:
        _, _, partition, data = self._chosen(a)
        if self._leads(partition):
            for _ in range(b % 3 + 1):
                data.of(partition.leader).records.append(self._next_record)
                self._next_record += 1
            self._commit(a)

    def flush(self, a: int, b: int) -> None:
        *_, data = self._chosen(a)
        replica = data.of(BROKERS[b % len(BROKERS)])
        replica.flushed = len(replica.records)

    def replicate(self, a: int, b: int) -> None:
        """A follower takes over what its leader has, losing what the leader has not."""
        _, _, partition, data = self._chosen(a)
        follower = partition.replicas[b % len(partition.replicas)]
        if follower == partition.leader or not self._leads(partition) or not self._serves(partition, follower):
            return
        replica = data.of(follower)
        replica.records[:] = data.of(partition.leader).records
        replica.flushed = min(replica.flushed, len(replica.records))
        replica.leader_epoch = partition.leader_epoch
        self._commit(a)

    def _commit(self, choice: int) -> None:
        topic, index, partition, data = self._chosen(choice)
        if len(partition.isr) < self.min_isr(topic, partition):
            return
        counted = dict.fromkeys(partition.isr)
        for request in self.in_flight:
            asked = request.topics[0].partitions[0]
            # A leader that sees another partition epoch knows that what it asked for will not be.
            if (request.topics[0].topic_id, asked.partition_index) == (topic.topic_id, index) and (
                asked.leader_epoch == partition.leader_epoch and asked.partition_epoch == partition.partition_epoch
            ):
                counted |= dict.fromkeys(member.broker_id for member in asked.new_isr_with_epochs)
        log = data.of(partition.leader).records
        for member in counted:
            replica = data.of(member)
            if member != partition.leader and replica.leader_epoch != partition.leader_epoch:
                # It has not fetched from this leader yet: nothing is known of what it has.
                return
            log = log[: len(replica.records)]
        if len(log) > len(data.committed):
            data.committed = list(log)
            self._count("commits")

    def let_all_recover(self, a: int, b: int) -> None:
        """All goes well for a while: who is down starts, everybody catches up, and leaders count them in."""
        for broker_id in BROKERS:
            self.start(broker_id, 0)
            self.beat(broker_id, 0)
        for choice, (_, _, partition) in enumerate(self._partitions()):
            for position in range(len(partition.replicas)):
                self.replicate(choice, position)
            del self.in_flight[: max(0, len(self.in_flight) - IN_FLIGHT_MAX + 1)]
            self.ask_for_isr(choice, 63)
            self.deliver(len(self.in_flight) - 1, 1)
            self.produce(choice, b)

    # What leaders and administrators ask for.

    def ask_for_isr(self, a: int, b: int) -> None:
        """A leader asks for those who have caught up, or for fewer; the request is under way from then on."""
        topic, index, partition, data = self._chosen(a)
        if not self._leads(partition) or len(self.in_flight) >= IN_FLIGHT_MAX:
            return
        log = data.of(partition.leader).records
        members = [partition.leader]
        for bit, replica in enumerate(partition.replicas):
            is_caught_up = (
                data.of(replica).leader_epoch == partition.leader_epoch
                and len(data.of(replica).records) >= len(data.committed)
                and data.of(replica).records == log[: len(data.of(replica).records)]
                and self.image.cluster.is_active(replica)
                and self._serves(partition, replica)
            )
            wanted = b >> bit & 1
            if replica != partition.leader and wanted and (is_caught_up or replica in partition.isr):
                members.append(replica)
        asked = AlterPartitionPartition(
            partition_index=index,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=[
                BrokerState(member, broker.epoch if (broker := self.image.cluster.brokers.get(member)) else -1)
                for member in members
            ],
            leader_recovery_state=RECOVERED,
            partition_epoch=partition.partition_epoch,
        )
        epoch = self.image.cluster.brokers[partition.leader].epoch
        self.in_flight.append(
            AlterPartitionRequest(partition.leader, epoch, [AlterPartitionTopic(topic.topic_id, [asked])])
        )

    def deliver(self, a: int, b: int) -> None:
        if self.in_flight:
            position = a % len(self.in_flight)
            request = self.in_flight[position] if b % 8 == 0 else self.in_flight.pop(position)
            before = self.image
            self._submit(lambda image: self.controller.alter_partition(image, request))
            if self.image is not before:
                self._count("ISR changes")

    def overtake(self, a: int, b: int) -> None:
        """Two requests of a leader: the second arrives first, and what it allows is made use of."""
        self.ask_for_isr(a, 63)
        self.ask_for_isr(a, b)
        self.deliver(len(self.in_flight) - 1, 1)
        self.produce(a, b)
        *_, partition, _ = self._chosen(a)
        for position, replica in enumerate(partition.replicas):
            if replica in partition.isr:
                self.replicate(a, position)

    def linger(self, a: int, b: int) -> None:
        """Somebody falls out of the ISR and catches up again; the request to count it in is slow to arrive."""
        self.ask_for_isr(a, b)
        self.deliver(len(self.in_flight) - 1, 1)
        *_, partition, _ = self._chosen(a)
        for position in range(len(partition.replicas)):
            self.replicate(a, position)
        self.ask_for_isr(a, 63)

    def drop(self, a: int, b: int) -> None:
        if self.in_flight:
            self.in_flight.pop(a % len(self.in_flight))

    def reassign(self, a: int, b: int) -> None:
        topic, index, *_ = self._chosen(a)
        targets = [broker_id for bit, broker_id in enumerate(BROKERS) if b >> bit & 1]
        replicas = None if b % 5 == 0 else targets[b % 3 :] + targets[: b % 3]
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(topic.name, [ReassignablePartition(index, replicas)])]
        )
        before = self.image
        self._submit(lambda image: self.controller.alter_partition_reassignments(image, request))
        if self.image is not before:
            self._count("moves")

    def elect(self, a: int, b: int) -> None:
        topic, index, *_ = self._chosen(a)
        partitions = [ElectLeadersTopicPartitions(topic.name, [index])]
        request = ElectLeadersRequest(1 if b % 8 == 0 else 0, partitions)
        self._submit(lambda image: self.controller.elect_leaders(image, request))

    def set_minimum(self, a: int, b: int) -> None:
        topic, *_ = self._chosen(a)
        kind, name = (4, "") if b % 4 == 0 else (2, topic.name)
        config = IncrementalAlterableConfig("min.insync.replicas", 0, str(b % 3 + 1))
        request = IncrementalAlterConfigsRequest(resources=[IncrementalAlterConfigsResource(kind, name, [config])])
        self._submit(lambda image: self.controller.incremental_alter_configs(image, request))


OPERATIONS: tuple[str, ...] = (
    *("start", "beat", "time_passes", "time_passes", "let_all_recover"),
    *("shut_down", "power_loss", "come_back", "new_controller", "unregister"),
    *("assign", "lose_directory"),
    *("produce", "produce", "produce", "replicate", "replicate", "replicate", "flush"),
    *("ask_for_isr", "ask_for_isr", "overtake", "linger", "deliver", "deliver", "deliver", "drop"),
    *("reassign", "elect", "set_minimum"),
)
"""Named as often as they are likely."""


def run_operations(model: ClusterModel, operations: list[tuple[str, int, int]]) -> None:
    for name, a, b in operations:
        getattr(model, name)(a, b)
        model.check()


def run_seed(seed: int, *, step_count: int, **options: bool) -> ClusterModel:
    """A long run drawn from one number."""
    generator = random.Random(seed)
    model = ClusterModel(**options)
    run_operations(
        model,
        [
            (OPERATIONS[generator.randrange(len(OPERATIONS))], generator.randrange(64), generator.randrange(64))
            for _ in range(step_count)
        ],
    )
    return model
