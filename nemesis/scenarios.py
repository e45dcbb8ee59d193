"""The harm that is done, one function for each kind. Each ends by itself when the run's time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from millbeck.server.local.embedded import FAST_FAILOVER
from nemesis.alarming import signals
from nemesis.cluster import NemesisNode
from nemesis.hosts import Host
from nemesis.judgement import Bar
from nemesis.run import Run, RunFailed

What = TypeVar("What")


def kill(run: Run) -> None:
    """kill -9 of a random node every five seconds, whatever the state of the others; back after 0 to 3 s."""
    while not run.is_over:
        member = run.pick([one for one in run.cluster.members if one.is_running])
        member.kill()
        away_s = run.rng.uniform(0, 3)
        run.report(f"killed {member.host.name} for {away_s:.1f} s")
        run.sleep(away_s)
        member.start()
        run.sleep(run.kill_every_s - away_s)


def pause(run: Run) -> None:
    """SIGSTOP of a random node every five seconds: a zombie that believes it still leads when it wakes."""
    ends: list[tuple[float, NemesisNode]] = []
    while not run.is_over:
        member = _victim(run, [member for _, member in ends])
        away_s = _away_s(run)
        member.pause()
        run.report(f"paused {member.host.name} for {away_s:.1f} s")
        ends.append((time.monotonic() + away_s, member))
        for _, other in _due(run, ends):
            other.resume()


def partition(run: Run) -> None:
    """Every five seconds a node loses some or all of the others, one way or both. Clients are others, too."""
    ends: list[tuple[float, frozenset[tuple[Host, Host]]]] = []
    while not run.is_over:
        member = _victim(run, [])
        way = run.rng.choice(["both ways", "out", "in"])
        lost = _others(run, member)
        cuts = {(member.host, other) for other in lost} if way != "in" else set()
        cuts |= {(other, member.host) for other in lost} if way != "out" else set()
        for sender, receiver in cuts:
            sender.cut_off_from(receiver)
        away_s = _away_s(run)
        names = ", ".join(host.name for host in lost)
        run.report(f"cut {member.host.name} off from {names}, {way}, for {away_s:.1f} s")
        ends.append((time.monotonic() + away_s, frozenset(cuts)))
        for _, healed in _due(run, ends):
            for sender, receiver in healed.difference(*(cut for _, cut in ends)):
                sender.reach_again(receiver)


def _victim(run: Run, but: list[NemesisNode]) -> NemesisNode:
    """A broker twice as often as a controller: they have leaders to lose."""
    members = run.rng.choice([run.cluster.brokers, run.cluster.brokers, run.cluster.controllers])
    candidates = [member for member in members if member not in but]
    return run.pick(candidates or [member for member in run.cluster.members if member not in but])


def _others(run: Run, member: NemesisNode) -> list[Host]:
    """Whom it loses: one, half, all, or all controllers, which is what costs a broker its session."""
    others = [host for host in run.network.hosts.values() if host is not member.host]
    controllers = [one.host for one in run.cluster.controllers if one is not member]
    count = run.rng.choice([1, len(others) // 2, len(others), 0])
    return run.rng.sample(others, count) if count else controllers


def _away_s(run: Run) -> float:
    """Shorter than a session, or longer."""
    return run.rng.choice([run.rng.uniform(1, 6), run.rng.uniform(9.5, 15), run.rng.uniform(9.5, 15)])


def _due(run: Run, ends: list[tuple[float, What]]) -> Iterator[tuple[float, What]]:
    """Wait until it is time for the next harm, and meanwhile hand out, and forget, what ends."""
    next_s = time.monotonic() + run.kill_every_s
    while True:
        for end in [end for end in ends if end[0] <= time.monotonic()]:
            ends.remove(end)
            yield end
        wait_s = min([next_s, *(end_s for end_s, _ in ends)]) - time.monotonic()
        if next_s <= time.monotonic() or run.is_over:
            return
        run.sleep(max(wait_s, 0.0))


def power_cut(run: Run) -> None:
    """The power of one broker at a time; the next when the last is in sync again."""
    while not run.is_over:
        member = run.pick(run.cluster.brokers)
        member.power_cut()
        away_s = run.rng.uniform(0, 3)
        run.report(f"cut the power of {member.host.name} for {away_s:.1f} s")
        run.sleep(away_s)
        member.start()
        run.await_returned(member)


def power_cut_all(run: Run) -> None:
    """The power of every node at once: with flush.messages=1 whatever was acknowledged is on disks."""
    while not run.is_over:
        for member in run.cluster.members:
            member.host.cut_power()
        for member in run.cluster.members:
            member.kill()
            member.host.unmount()
            member.host.mount()
        run.report("cut the power of every node")
        for member in run.cluster.members:
            member.start()
        run.await_whole()
        run.sleep(run.rng.uniform(2, 8))


def lose_controllers(run: Run) -> None:
    """Two controllers of three: the data path goes on, a change of metadata waits and then succeeds."""
    from confluent_kafka.admin import NewTopic

    lost = run.rng.sample(run.cluster.controllers, 2)
    for member in lost:
        member.kill()
    run.report(f"killed {', '.join(member.host.name for member in lost)}")
    run.sleep(5)
    without_s = time.monotonic()
    created = run.admin.create_topics([NewTopic("while-away", 1, 3)], operation_timeout=60, request_timeout=90)
    run.sleep(10)
    if created["while-away"].done() and created["while-away"].exception() is None:
        raise RunFailed("a topic was created without a quorum")
    run.flows.append(("two controllers of three were lost", without_s, time.monotonic()))
    for member in lost:
        member.start()
    run.report("started them again")
    created["while-away"].result(60)
    run.report("the change of metadata succeeded")
    run.await_whole()


def rolling_restart(run: Run) -> None:
    """Every node in turn, each after the last is in sync again."""
    for member in run.cluster.members:
        member.stop()
        run.report(f"stopped {member.host.name}")
        member.start()
        if member.is_broker:
            run.await_returned(member)
        time.sleep(1)


def disk_full(run: Run) -> None:
    """The disk of a broker that leads fills up, and later has room again."""
    while not run.is_over:
        view = run.view()
        leaders = [one for one in run.cluster.brokers if view is not None and one.node_id in view.leaders.values()]
        if not leaders:
            continue
        member = run.pick(leaders)
        member.host.fill_disk()
        away_s = run.rng.uniform(8, 20)
        run.report(f"filled the disk of {member.host.name} for {away_s:.1f} s")
        time.sleep(away_s)
        member.host.empty_disk_again()
        if not member.is_running:
            # A node whose metadata log cannot be written ends, and says why.
            run.report(f"{member.host.name} has ended: {member.log_tail(1)}")
            member.start()
        run.await_whole()


def availability(run: Run) -> None:
    """Kill a leader, note what it led; the next kill comes when it is back in every ISR."""
    while not run.is_over:
        run.await_whole()
        time.sleep(1.0)
        view = run.view()
        if view is None:
            continue
        member = run.pick([one for one in run.cluster.brokers if one.node_id in view.leaders.values()])
        led = [index for index, leader in view.leaders.items() if leader == member.node_id]
        member.kill()
        killed_s = time.monotonic()
        run.windows += [(index, killed_s) for index in led]
        run.report(f"killed {member.host.name}, the leader of {len(led)} partitions")
        run.await_view(
            "another leader for every partition",
            lambda view, victim=member: all(  # type: ignore[misc]
                leader not in (-1, victim.node_id) for leader in view.leaders.values()
            ),
            60,
        )
        member.start()
        run.await_returned(member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    harm: Callable[[Run], None]
    seconds: float
    topic_settings: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    bar: Bar = field(default_factory=Bar)
    has_second_disks: bool = False
    """Whether every broker has a second log directory, on a disk of its own."""
    has_group: bool = False
    """Whether a member of a group reads along."""
    transactors: str | None = None
    """Whose client consumes, transforms and produces in transactions."""
    delivery_timeout_ms: int = 600_000
    """How long producers try: by default longer than any harm lasts."""

    def bar_of_both_roles(self) -> Bar:
        """A node that also leads the quorum is first missed there, and who leads next begins every session anew."""
        if self.bar.window_max_s is None:
            return self.bar
        fetch_timeout_ms = int(self.settings.get("controller.quorum.fetch.timeout.ms", 2000))
        return replace(self.bar, window_max_s=self.bar.window_max_s + fetch_timeout_ms / 1000)


BESIDES_SESSION_S = 1.5
TRANSACTIONS = Bar(leader_changes_min=30, committed_min=5000, aborted_min=200)
FEW_COORDINATORS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "group.initial.rebalance.delay.ms": "0",
}
"""As many as there are partitions to lose: a killed node is the coordinator of some."""
SAFETY = Bar(acknowledged_min=50_000, leader_changes_min=30)
FLUSHED = {"flush.messages": "1"}

SCENARIOS = {
    "kill": Scenario(harm=kill, seconds=600, bar=SAFETY),
    "transactions": Scenario(
        harm=kill, seconds=600, settings=FEW_COORDINATORS, bar=TRANSACTIONS, transactors="librdkafka"
    ),
    "transactions-java": Scenario(
        harm=kill, seconds=600, settings=FEW_COORDINATORS, bar=TRANSACTIONS, transactors="java"
    ),
    "pause": Scenario(harm=pause, seconds=600, bar=SAFETY),
    "partition": Scenario(harm=partition, seconds=600, bar=SAFETY),
    "power-cut": Scenario(harm=power_cut, seconds=180, bar=Bar(leader_changes_min=5)),
    "power-cut-all": Scenario(harm=power_cut_all, seconds=180, topic_settings=FLUSHED),
    "lose-controllers": Scenario(harm=lose_controllers, seconds=60),
    "rolling-restart": Scenario(
        harm=rolling_restart,
        seconds=120,
        bar=Bar(tolerates_client_errors=False),
        has_group=True,
        delivery_timeout_ms=30_000,
    ),
    "disk-full": Scenario(harm=disk_full, seconds=120, bar=Bar(leader_changes_min=5)),
    "availability": Scenario(
        harm=availability, seconds=300, bar=Bar(window_max_s=9 + BESIDES_SESSION_S, windows_min=30)
    ),
    "availability-fast": Scenario(
        harm=availability,
        seconds=300,
        settings=FAST_FAILOVER,
        bar=Bar(window_max_s=1.5 + BESIDES_SESSION_S, windows_min=60),
    ),
    "signals": Scenario(harm=signals, seconds=600, has_second_disks=True),
}
