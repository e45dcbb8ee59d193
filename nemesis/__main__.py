"""`python -m nemesis [SCENARIO ...]`: harm to a cluster of real processes, judged by what real clients saw.

As root on Linux: three controllers and three brokers, each in a network namespace and on an ext4 image of its own.
Nothing lost, nothing twice, nothing out of order, and enough of everything to mean it; the exit status says so.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

from confluent_kafka.admin import AdminClient

from nemesis.asyncio_clients import LIBRARIES
from nemesis.cluster import Cluster, MemberFailed
from nemesis.hosts import HostFailed, Network
from nemesis.judgement import Verdict, judge
from nemesis.mutants import MUTANTS
from nemesis.run import (
    DISK_BYTES,
    PARTITIONS,
    PRODUCERS,
    Clients,
    NeverWhole,
    Run,
    RunFailed,
    create_topic,
    enter_network,
)
from nemesis.scenarios import SCENARIOS, Scenario
from nemesis.transactions import TARGET, Transactions

SYSTEMS = ("millbeck", "apache-kafka")


class LeaderWatch:
    """Counts changes of leaders as a client's metadata shows them."""

    def __init__(self, run: Run) -> None:
        self.changes = 0
        self._run = run
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        last: dict[int, int] = {}
        while not self._stopping.wait(0.2):
            view = self._run.view()
            if view is None:
                continue
            for partition, leader in view.leaders.items():
                if leader >= 0 and last.get(partition, leader) != leader:
                    self.changes += 1
                if leader >= 0:
                    last[partition] = leader

    def stop(self) -> int:
        self._stopping.set()
        self._thread.join(10)
        return self.changes


def run_scenario(name: str, scenario: Scenario, chosen: argparse.Namespace) -> bool:
    seed = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(1 << 32)
    seconds = chosen.seconds or scenario.seconds
    if chosen.directory is not None:
        chosen.directory.mkdir(parents=True, exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="nemesis-", dir=chosen.directory))
    print(f"{name}: {chosen.system}, {chosen.library}, {seconds:.0f} s, seed {seed}", flush=True)
    controllers = [f"c{number}" for number in range(1, 4)]
    brokers = [f"b{number}" for number in range(1, 4)]
    if chosen.combined:
        controllers = brokers
    names = list(dict.fromkeys([*controllers, *brokers]))
    try:
        with Network(directory / "hosts", names, clients=["client"], disk_bytes=DISK_BYTES) as network:
            if scenario.has_second_disks:
                for each in brokers:
                    network.hosts[each].add_second_disk(DISK_BYTES)
            cluster = Cluster(
                chosen.system,
                [network.hosts[each] for each in controllers],
                [network.hosts[each] for each in brokers],
                directory / "logs",
                scenario.settings,
                chosen.mutant,
            )
            enter_network(network.hosts["client"])
            with cluster:
                run = Run(
                    network=network,
                    cluster=cluster,
                    rng=random.Random(seed),
                    deadline_s=0.0,
                    directory=directory,
                    admin=AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}),
                    kill_every_s=chosen.kill_every,
                    only=tuple(chosen.only),
                )
                try:
                    verdict, leader_changes = _carry_out(run, scenario, seconds, chosen.rate, chosen.library)
                except RunFailed:
                    for member in cluster.members:
                        member.save_metrics()
                    raise
    except NeverWhole as failure:
        print(f"  {'passed: the defect shows,' if chosen.mutant else 'FAILED'} {failure}", flush=True)
        print(f"  the logs are in {directory}", flush=True)
        return chosen.mutant is not None
    except (RunFailed, MemberFailed, HostFailed) as failure:
        print(f"  FAILED {failure}\n  the logs are in {directory}", flush=True)
        return False
    except BaseException:
        print(f"  the logs are in {directory}", flush=True)
        raise
    bar = scenario.bar_of_both_roles() if chosen.combined else scenario.bar
    problems = bar.problems(verdict, leader_changes, share=seconds / scenario.seconds)
    found = [*verdict.anomalies, *(verdict.transactions.anomalies if verdict.transactions else [])]
    has_passed = bool(found) if chosen.mutant else not problems
    _report(verdict, leader_changes, problems)
    print("  passed" if has_passed else "  FAILED", flush=True)
    if has_passed:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print(f"  the logs are in {directory}", flush=True)
    return has_passed


def _carry_out(run: Run, scenario: Scenario, seconds: float, rate: float, library: str) -> tuple[Verdict, int]:
    run.report("starting")
    create_topic(run.admin, scenario.topic_settings, broker_count=len(run.cluster.brokers))
    if scenario.transactors is not None:
        create_topic(run.admin, scenario.topic_settings, broker_count=len(run.cluster.brokers), name=TARGET)
    run.await_whole()
    clients = Clients(run.cluster.bootstrap, run.directory, library)
    work = None if scenario.transactors is None else Transactions(run, clients, scenario.transactors)
    producers = [f"p{number}" for number in range(PRODUCERS)]
    try:
        for name in producers:
            clients.start(
                "produce",
                name,
                partitions=PARTITIONS,
                rate=rate / PRODUCERS,
                delivery_timeout_ms=scenario.delivery_timeout_ms,
            )
        clients.start("consume", "tail", partitions=PARTITIONS)
        if scenario.has_group:
            clients.start("take-part", "member")
        if work is not None:
            work.start()
        watch = LeaderWatch(run)
        time.sleep(2)
        run.deadline_s = time.monotonic() + seconds
        run.report("harm begins")
        scenario.harm(run)
        run.report("harm ends")
        run.network.heal()
        run.deadline_s = time.monotonic() + 3600
        for member in run.cluster.members:
            member.resume()
            if not member.is_running:
                member.start()
        run.await_whole()
        leader_changes = watch.stop()
        for name in producers:
            clients.end(name)
        clients.start("read-all", "final", partitions=PARTITIONS, patience_s=120)
        clients.end("final")
        clients.end("tail")
        if scenario.has_group:
            clients.end("member")
        if work is not None:
            work.finish()
    finally:
        clients.kill()
    verdict = judge(
        [clients.notes(name) for name in producers],
        [clients.notes("tail")],
        clients.notes("final"),
        members=[clients.notes("member")] if scenario.has_group else [],
        kills=run.windows,
        flows=run.flows,
        acknowledged_count_min=1,
    )
    if work is not None:
        verdict = replace(verdict, transactions=work.judge(clients.notes("final")))
    return verdict, leader_changes


def _report(verdict: Verdict, leader_changes: int, problems: list[str]) -> None:
    print(
        f"  {verdict.sent} sent, {verdict.acknowledged} acknowledged, {verdict.undelivered} undelivered,"
        f" {verdict.read} read at the end; {leader_changes} changes of leaders"
    )
    if verdict.windows_s:
        ordered = sorted(verdict.windows_s)
        p50, p99 = ordered[len(ordered) // 2], verdict.window_p99_s
        print(
            f"  without a leader: {len(ordered)} windows, p50 {p50:.2f} s, p99 {p99:.2f} s, longest {ordered[-1]:.2f} s"
        )
    if verdict.transactions is not None:
        done = verdict.transactions
        print(
            f"  transactions: {done.committed} committed, {done.aborted} aborted;"
            f" {done.records} records came through, checksum {done.checksum}"
        )
    for problem in problems[:20]:
        print(f"  PROBLEM {problem}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m nemesis", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; all by default")
    parser.add_argument("--system", choices=SYSTEMS, default="millbeck")
    parser.add_argument("--library", choices=LIBRARIES, default="librdkafka", help="of producers and the consumer")
    parser.add_argument("--seconds", type=float, help="of harm, instead of each scenario's own")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--rate", type=float, default=300, help="records a second, all producers together")
    parser.add_argument("--kill-every", type=float, default=5, help="seconds, for systems that take longer to start")
    parser.add_argument("--only", action="append", default=[], metavar="SIGNAL", help="of those that `signals` drives")
    parser.add_argument("--combined", action="store_true", help="three nodes with both roles instead of six")
    parser.add_argument(
        "--mutant", choices=MUTANTS, help="every node has this defect; passes when the judgement finds it"
    )
    parser.add_argument("--directory", type=Path, help="where images and logs are put", default=None)
    chosen = parser.parse_args()
    unknown = [name for name in chosen.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {unknown[0]}; there are {', '.join(SCENARIOS)}")
    if os.geteuid() != 0:
        print("the nemesis needs root: it makes network namespaces and mounts images", file=sys.stderr)
        return 2
    # A run that is told to end leaves no namespaces, mounts and processes behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    passed = [run_scenario(name, SCENARIOS[name], chosen) for name in chosen.scenarios or SCENARIOS]
    print(f"{sum(passed)} of {len(passed)} scenarios passed")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
