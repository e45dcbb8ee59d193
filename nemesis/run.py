"""One run: a cluster, its clients, somebody who does harm, and the judgement."""

from __future__ import annotations

import ctypes
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from nemesis.asyncio_clients import ROLES as ASYNCIO_ROLES
from nemesis.cluster import CLIENT_PORT, Cluster, NemesisNode
from nemesis.hosts import Host, Network

TOPIC = "history"
PARTITIONS = 6
PRODUCERS = 2
DISK_BYTES = 1 << 30
READY_S = 90.0
HEALED_S = 90.0
_CLONE_NEWNET = 0x40000000


class RunFailed(Exception):
    """The run could not be judged: something other than the log did not do its part."""


class NeverWhole(RunFailed):
    """The cluster did not become what it should be again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The topic as a broker describes it: each partition's leader (-1: none) and its in-sync replicas."""

    leaders: dict[int, int]
    in_sync: dict[int, tuple[int, ...]]


@dataclass(slots=True)
class Run:
    """What a scenario may use."""

    network: Network
    cluster: Cluster
    rng: random.Random
    deadline_s: float
    directory: Path
    admin: AdminClient
    kill_every_s: float = 5.0
    only: tuple[str, ...] = ()
    """The signals to drive; all when there are none."""
    events: list[tuple[float, str]] = field(default_factory=list)
    """When what was done."""
    windows: list[tuple[int, float]] = field(default_factory=list)
    """For each partition whose leader was killed: how it was called, and when that was."""
    flows: list[tuple[str, float, float]] = field(default_factory=list)
    """What was going on from when to when, while every partition had to take records."""

    def report(self, text: str) -> None:
        self.events.append((time.monotonic(), text))
        print(f"  {time.monotonic() - self.events[0][0]:7.1f} s  {text}", flush=True)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.deadline_s

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, min(seconds, self.deadline_s - time.monotonic())))
        for member in self.cluster.members:
            member.check_alive()

    def view(self) -> View | None:
        """None when no broker answers."""
        try:
            topic = self.admin.list_topics(TOPIC, timeout=2).topics[TOPIC]
        except Exception:
            return None
        if topic.error is not None:
            return None
        return View(
            leaders={index: partition.leader for index, partition in topic.partitions.items()},
            in_sync={index: tuple(partition.isrs) for index, partition in topic.partitions.items()},
        )

    def await_view(self, what: str, holds: Callable[[View], bool], patience_s: float) -> None:
        deadline_s = time.monotonic() + patience_s
        view = None
        while time.monotonic() < deadline_s:
            view = self.view()
            if view is not None and len(view.leaders) == PARTITIONS and holds(view):
                return
            for member in self.cluster.members:
                member.check_alive()
            time.sleep(0.1)
        raise NeverWhole(f"{what} did not come about in {patience_s:.0f} s; the last view: {view}")

    def await_whole(self, patience_s: float = HEALED_S) -> None:
        """Every replica in sync, every partition led."""
        count = min(3, len(self.cluster.brokers))
        self.await_view(
            "a cluster with every replica in sync",
            lambda view: (
                all(leader >= 0 for leader in view.leaders.values())
                and all(len(replicas) == count for replicas in view.in_sync.values())
            ),
            patience_s,
        )

    def await_returned(self, member: NemesisNode, patience_s: float = HEALED_S) -> None:
        """A broker that was started again is in sync, by what it says itself.

        What others say is no proof: until it has registered anew they may count it in from before.
        """
        own = AdminClient({"bootstrap.servers": f"{member.host.address}:{CLIENT_PORT}", "log_level": 0})
        deadline_s = time.monotonic() + patience_s
        while time.monotonic() < deadline_s:
            member.check_alive()
            try:
                own.list_topics(TOPIC, timeout=1)
                self.await_whole(max(1.0, deadline_s - time.monotonic()))
                return
            except KafkaException:
                time.sleep(0.1)
        raise RunFailed(f"{member.host.name} did not answer in {patience_s:.0f} s:\n{member.log_tail()}")

    def pick(self, members: list[NemesisNode]) -> NemesisNode:
        return self.rng.choice(members)


class Clients:
    """The client processes of a run; each writes its notes to a file."""

    def __init__(self, bootstrap: str, directory: Path, library: str = "librdkafka") -> None:
        """``library`` is what producers and consumers use; other roles have librdkafka."""
        self._bootstrap = bootstrap
        self._library = library
        self._directory = directory
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, role: str, name: str, *, topic: str = TOPIC, **options: object) -> None:
        module = ["nemesis.clients"]
        if role in ASYNCIO_ROLES and self._library != "librdkafka":
            module = ["nemesis.asyncio_clients", self._library]
        command = [sys.executable, "-m", *module, role, self._bootstrap, topic, str(self.notes(name))]
        self.launch(name, [*command, json.dumps({"name": name, **options})])

    def launch(self, name: str, command: list[str]) -> None:
        with (self._directory / f"{name}.stderr").open("wb") as errors:
            self._processes[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=errors, stderr=errors)

    def notes(self, name: str) -> Path:
        return self._directory / f"{name}.jsonl"

    def end(self, name: str, patience_s: float = 200.0) -> None:
        process = self._processes.pop(name)
        assert process.stdin is not None
        process.stdin.close()
        try:
            status = process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)
            raise RunFailed(f"client {name} did not end in {patience_s:.0f} s") from None
        if status != 0:
            raise RunFailed(f"client {name} failed: {(self._directory / f'{name}.stderr').read_text()[-2000:]}")

    def kill(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait(10)
        self._processes.clear()


def enter_network(host: Host) -> None:
    """This thread, and what it starts, is on ``host``'s network from now on."""
    descriptor = os.open(f"/run/netns/{host.namespace}", os.O_RDONLY)
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if library.setns(descriptor, _CLONE_NEWNET) != 0:
            raise RunFailed(f"cannot enter the network of {host.name}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def create_topic(admin: AdminClient, settings: Mapping[str, str], *, broker_count: int, name: str = TOPIC) -> None:
    """When all brokers are there: those that came later would lead nothing."""
    deadline_s = time.monotonic() + READY_S
    while True:
        try:
            if len(admin.list_topics(timeout=5).brokers) < broker_count:
                raise RunFailed("brokers are missing")
            topic = NewTopic(name, PARTITIONS, 3, config=dict(settings))
            admin.create_topics([topic], operation_timeout=10)[name].result(15)
            return
        except Exception as error:
            # An attempt that timed out may have been carried out all the same.
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if time.monotonic() > deadline_s:
                raise RunFailed(f"the cluster was not ready in {READY_S:.0f} s: {error}") from error
            time.sleep(0.5)
