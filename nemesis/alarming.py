"""What drives each signal over its threshold, and back: the scenario `signals`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from nemesis.cluster import CLIENT_PORT, NemesisNode
from nemesis.run import Clients, Run, RunFailed
from nemesis.signals import Bench, SignalWatch, table

LONE, DOUBTFUL, LAGGING, CONTRADICTORY = "lone", "doubtful", "lagging", "contradictory"
GROUP = "laggards"
UNCLEAN = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
LAG_RECORDS = 15_000
QUIET_S = 10.0


def signals(run: Run) -> None:
    """Each page-severity signal of the shipped rules fires when it should, and goes away when its cause does."""
    first, second, _ = run.cluster.brokers
    _create(run, LONE, [[first.node_id]], {"min.insync.replicas": "1"})
    _create(run, DOUBTFUL, [[first.node_id, second.node_id]], UNCLEAN)
    _create(run, LAGGING, [[member.node_id for member in run.cluster.brokers]], {})
    watch = SignalWatch(run.cluster.members)
    bench = Bench(watch, run.report, [])
    try:
        run.await_whole()
        _await_quiet(bench)
        for alert, drive in DRIVES.items():
            if not run.only or alert in run.only:
                drive(run, bench)
                run.await_whole()
                bench.check_gone(alert)
    finally:
        watch.stop()
        for line in table(bench.outcomes):
            print(f"  {line}", flush=True)
    problems = [outcome.problem for outcome in bench.outcomes if outcome.problem]
    if problems:
        raise RunFailed("; ".join(problems))


def _await_quiet(bench: Bench) -> None:
    """A cluster that is well raises no alarm; `NodeDown` and the like may have to pass first."""
    deadline_s = time.monotonic() + 60
    quiet_since_s = time.monotonic()
    while time.monotonic() < quiet_since_s + QUIET_S or bench.watch.scrapes < QUIET_S:
        if bench.watch.firing:
            quiet_since_s = time.monotonic()
        if time.monotonic() > deadline_s:
            raise RunFailed(f"a cluster that is well raises {', '.join(sorted(bench.watch.firing))}")
        time.sleep(0.1)
    bench.report(f"quiet for {QUIET_S:.0f} s")


# What is done to the cluster, undone at the end of each block.


@contextmanager
def _killed(run: Run, members: Sequence[NemesisNode]) -> Iterator[None]:
    for member in members:
        member.kill()
    run.report(f"killed {', '.join(member.host.name for member in members)}")
    try:
        yield
    finally:
        for member in members:
            if not member.is_running:
                member.start()


@contextmanager
def _cut_off(run: Run, member: NemesisNode, others: Sequence[NemesisNode]) -> Iterator[None]:
    for other in others:
        member.host.cut_off_from(other.host)
        other.host.cut_off_from(member.host)
    run.report(f"cut {member.host.name} off from {', '.join(other.host.name for other in others)}")
    try:
        yield
    finally:
        run.network.heal()


@contextmanager
def _defective(run: Run, members: Sequence[NemesisNode], defect: str) -> Iterator[None]:
    """They run with a defect for a while, as if that version had been rolled out."""
    _restart(members, defect)
    run.report(f"{', '.join(member.host.name for member in members)}: {defect}")
    try:
        yield
    finally:
        _restart(members, None)


def _restart(members: Sequence[NemesisNode], defect: str | None) -> None:
    for member in members:
        member.kill()
    for member in members:
        member.mutant = defect
        member.start()


@contextmanager
def _without_second_disk(run: Run, member: NemesisNode) -> Iterator[None]:
    """It breaks while the node runs, and is replaced by an empty one as docs/monitoring.md says."""
    member.host.break_second_disk()
    run.report(f"broke the second disk of {member.host.name}")
    try:
        yield
        member.check_alive()
    finally:
        member.kill()
        member.host.replace_second_disk()
        member.format()
        member.start()


@contextmanager
def _with_second_disk_full(run: Run, member: NemesisNode) -> Iterator[None]:
    """Only the second one: the first has the metadata log too, without which a node ends."""
    disk = member.host.second_disk
    member.host.fill_disk(disk)
    run.report(f"filled the second disk of {member.host.name}")
    try:
        yield
        member.check_alive()
    finally:
        member.host.empty_disk_again(disk)


@contextmanager
def _busy(run: Run, member: NemesisNode) -> Iterator[None]:
    """More requests than it can answer."""
    clients = Clients(f"{member.host.address}:{CLIENT_PORT}", run.directory)
    clients.start("flood", "flood", connections=16)
    run.report(f"flooding {member.host.name}")
    try:
        yield
    finally:
        clients.kill()


# The signals, in the order of docs/monitoring.md.


def _unclean_election(run: Run, bench: Bench) -> None:
    """The only replica in sync dies, and one that lacks its records comes back."""
    first, second, _ = run.cluster.brokers
    with bench.signal("UncleanLeaderElection", factor=60, clearing_factor=240) as driven, _killed(run, [second]):
        _await_in_sync(run, DOUBTFUL, {first.node_id})
        _produce(run, DOUBTFUL, 10)
        with _killed(run, [first]):
            _await_in_sync(run, DOUBTFUL, {first.node_id}, leader=-1)
            second.start()
            driven.fired()
            _await_in_sync(run, DOUBTFUL, {second.node_id}, leader=second.node_id)


def _offline(run: Run, bench: Bench) -> None:
    with bench.signal("OfflinePartitions", factor=1) as driven, _killed(run, [run.cluster.brokers[0]]):
        driven.fired()


def _under_min_isr(run: Run, bench: Bench) -> None:
    with bench.signal("UnderMinIsr", factor=1) as driven, _killed(run, run.cluster.brokers[1:]):
        driven.fired()


def _under_replicated(run: Run, bench: Bench) -> None:
    with bench.signal("UnderReplicated", factor=30) as driven, _killed(run, [run.pick(run.cluster.brokers)]):
        driven.fired()


def _no_controller(run: Run, bench: Bench) -> None:
    victims = run.rng.sample(run.cluster.controllers, 2)
    with bench.signal("ActiveControllers", factor=5) as driven, _killed(run, victims):
        driven.fired()


def _busy_loop(run: Run, bench: Bench) -> None:
    with bench.signal("EventLoopBusy", factor=60) as driven, _busy(run, run.pick(run.cluster.brokers)):
        driven.fired()


def _growing_lag(run: Run, bench: Bench) -> None:
    """A group that has committed once and reads no more, while producers go on."""
    consumer = Consumer({"bootstrap.servers": run.cluster.bootstrap, "group.id": GROUP, "log_level": 0})
    with bench.signal("ConsumerLagGrowing", factor=120) as driven:
        _commit(consumer, 0)
        _produce(run, LAGGING, LAG_RECORDS)
        growing = Clients(run.cluster.bootstrap, run.directory)
        growing.start("burst", "burst", burst_topic=LAGGING, rate=200)
        try:
            driven.fired()
        finally:
            growing.kill()
        _, end = consumer.get_watermark_offsets(TopicPartition(LAGGING, 0), timeout=30)
        _commit(consumer, end)
    consumer.close()


def _slow_controller(run: Run, bench: Bench) -> None:
    """Every controller gets a second's pause again and again: shorter than any session, longer than is good."""
    with bench.signal("ControllerSlow", factor=60) as driven:
        deadline_s = time.monotonic() + 90
        while "ControllerSlow" not in bench.watch.firing and time.monotonic() < deadline_s:
            member = run.cluster.controllers[0]
            member.pause()
            time.sleep(0.9)
            member.resume()
            time.sleep(0.3)
        driven.fired(5)


def _old_metadata(run: Run, bench: Bench) -> None:
    victim = run.pick(run.cluster.brokers)
    with bench.signal("MetadataLag", factor=10) as driven, _cut_off(run, victim, run.cluster.controllers):
        driven.fired()


def _contradiction(run: Run, bench: Bench) -> None:
    """The active controller takes a decision that its own metadata refuses; nothing of it reaches the log."""
    with bench.signal("MetadataErrors", factor=1) as driven:
        with _defective(run, run.cluster.controllers, "decisions-contradict"):
            _await_refused(run, CONTRADICTORY)
            driven.fired()
        _create(run, CONTRADICTORY, [[run.cluster.brokers[0].node_id]], {"min.insync.replicas": "1"})


def _node_down(run: Run, bench: Bench) -> None:
    with bench.signal("NodeDown", factor=10) as driven, _killed(run, [run.pick(run.cluster.members)]):
        driven.fired()


def _broken_disk(run: Run, bench: Bench) -> None:
    """One of two: the other goes on, and so does the node."""
    victim = run.pick(run.cluster.brokers)
    with bench.signal("LogDirectoryOffline", factor=1) as driven, _without_second_disk(run, victim):
        driven.fired()
        own = AdminClient({"bootstrap.servers": f"{victim.host.address}:{CLIENT_PORT}", "log_level": 0})
        own.list_topics(timeout=30)


def _full_disk(run: Run, bench: Bench) -> None:
    victim = run.pick(run.cluster.brokers)
    with bench.signal("DiskFull", factor=10) as driven, _with_second_disk_full(run, victim):
        driven.fired()


def _stuck_fetcher(run: Run, bench: Bench) -> None:
    victim = run.pick(run.cluster.brokers)
    with bench.signal("FetcherStuck", factor=10) as driven, _defective(run, [victim], "fetchers-drop-answers"):
        driven.fired()


def _dead_cleaner(run: Run, bench: Bench) -> None:
    victim = run.pick(run.cluster.brokers)
    with bench.signal("CleanerDead", factor=1) as driven, _defective(run, [victim], "cleaners-end"):
        driven.fired()


DRIVES = {
    "UncleanLeaderElection": _unclean_election,
    "OfflinePartitions": _offline,
    "UnderMinIsr": _under_min_isr,
    "UnderReplicated": _under_replicated,
    "ActiveControllers": _no_controller,
    "EventLoopBusy": _busy_loop,
    "ConsumerLagGrowing": _growing_lag,
    "ControllerSlow": _slow_controller,
    "MetadataLag": _old_metadata,
    "MetadataErrors": _contradiction,
    "NodeDown": _node_down,
    "LogDirectoryOffline": _broken_disk,
    "DiskFull": _full_disk,
    "FetcherStuck": _stuck_fetcher,
    "CleanerDead": _dead_cleaner,
}


# Around them.


def _create(run: Run, topic: str, assignment: list[list[int]], settings: dict[str, str]) -> None:
    new = NewTopic(topic, len(assignment), replica_assignment=assignment, config=settings)
    run.admin.create_topics([new], operation_timeout=20)[topic].result(30)


def _await_refused(run: Run, topic: str) -> None:
    """Until a controller has refused to make it; before, there may be none."""
    deadline_s = time.monotonic() + 60
    last: object = None
    while time.monotonic() < deadline_s:
        try:
            _create(run, topic, [[run.cluster.brokers[0].node_id]], {})
        except KafkaException as error:
            last = error
            if error.args[0].code() == KafkaError.UNKNOWN:
                return
        else:
            raise RunFailed(f"{topic} was made")
        time.sleep(0.5)
    raise RunFailed(f"{topic} was not refused: {last}")


def _await_in_sync(run: Run, topic: str, wanted: set[int], leader: int | None = None) -> None:
    deadline_s = time.monotonic() + 60
    last: object = None
    while time.monotonic() < deadline_s:
        with suppress(KafkaException):
            partition = run.admin.list_topics(topic, timeout=2).topics[topic].partitions[0]
            last = (partition.leader, partition.isrs)
            has_leader = leader is None or partition.leader == leader
            if has_leader and (leader == -1 or set(partition.isrs) == wanted):
                return
        time.sleep(0.1)
    raise RunFailed(f"{topic}: leader and replicas in sync stayed {last}")


def _produce(run: Run, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": run.cluster.bootstrap, "acks": 1, "log_level": 0})
    for number in range(count):
        producer.produce(topic, value=str(number).encode(), partition=0)
        producer.poll(0)
    if producer.flush(60):
        raise RunFailed(f"{topic} took no records")


def _commit(consumer: Consumer, offset: int) -> None:
    deadline_s = time.monotonic() + 60
    while True:
        try:
            consumer.commit(offsets=[TopicPartition(LAGGING, 0, offset)], asynchronous=False)
            return
        except KafkaException as error:
            if time.monotonic() > deadline_s:
                raise RunFailed(f"offsets could not be committed: {error}") from error
            time.sleep(0.5)
