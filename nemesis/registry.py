"""`python -m nemesis.registry`: the schema registry while its leader and a broker are killed every three seconds.

Three brokers, three instances of the registry and clients that register schemas, each under subjects of its own, and
delete some of them for good. A request is repeated, through any instance, until it is answered. In the end every
answered schema is there under its id, on each instance; no id was given to two schemas, a deleted one's neither; and no
deleted schema is back. The exit status says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.testing import Cluster, cluster
from millbeck.testing.cluster_processes import _free_ports

INSTANCES: Final = 3
SESSION_MS: Final = 3000
CLUSTER: Final = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "group.min.session.timeout.ms": "1000",
}
REQUEST_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 120.0
DELETED: Final = 0.25
RETRY_SECONDS: Final = 0.1


@dataclass(slots=True, kw_only=True)
class Options:
    seconds: float = 300.0
    clients: int = 20
    kill_every_s: float = 3.0
    seed: int = 1


class Instance:
    """One instance of the registry in a process of its own; the port stays the same."""

    def __init__(self, bootstrap: str, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        settings = {
            "listeners": self.url,
            "kafkastore.bootstrap.servers": bootstrap,
            "kafkastore.timeout.ms": "5000",
            "schema.registry.group.session.timeout.ms": str(SESSION_MS),
        }
        options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        self._command = [sys.executable, "-m", "millbeck.cli.main", "registry", "start", "--stops-with-input", *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and answer; raises OSError when there is none."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)
        except ValueError as error:
            raise OSError(f"half an answer: {error}") from error


@dataclass(slots=True)
class Outcome:
    """What clients were told."""

    held: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The id and the text of each subject that was registered and not deleted."""
    deleted: dict[str, int] = field(default_factory=dict)
    texts: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The texts that each id was given to."""
    kills: int = 0
    longest_s: float = 0.0
    problems: list[str] = field(default_factory=list)


class Run:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.outcome = Outcome()
        self._instances: list[Instance] = []
        self._lock = threading.Lock()
        self._ends_s = 0.0

    def run(self) -> Outcome:
        with cluster(CLUSTER) as brokers:
            self._instances = [Instance(brokers.bootstrap, port) for port in _free_ports(INSTANCES)]
            try:
                for each in self._instances:
                    each.start()
                self._until_answered(random.Random(0), "PUT", "/config", {"compatibility": "NONE"}, _is_done)
                self._ends_s = time.monotonic() + self.options.seconds
                clients = [
                    threading.Thread(target=self._client, args=(index,)) for index in range(self.options.clients)
                ]
                for thread in clients:
                    thread.start()
                self._harm(brokers)
                for thread in clients:
                    thread.join(SETTLE_SECONDS)
                    if thread.is_alive():
                        self.outcome.problems.append("a client does not finish")
                if not self.outcome.problems:
                    self._judge()
            finally:
                self._ends_s = 0.0
                for each in self._instances:
                    each.kill()
        return self.outcome

    # harm

    def _harm(self, brokers: Cluster) -> None:
        """Kill the registry's leader and a broker in turns, and start them again a moment later."""
        dice = random.Random(self.options.seed)
        number = 0
        while time.monotonic() < self._ends_s:
            time.sleep(self.options.kill_every_s)
            number += 1
            if number % 2:
                victim = self._leader() or dice.choice(self._instances)
                victim.kill()
                time.sleep(dice.uniform(0.0, 1.0))
                victim.start()
            else:
                node = dice.choice(brokers.nodes)
                node.kill()
                time.sleep(dice.uniform(0.0, 1.0))
                node.restart()
            self.outcome.kills += 1

    def _leader(self) -> Instance | None:
        for each in self._instances:
            try:
                _, health = each.request("GET", "/health")
            except OSError:
                continue
            leader = next((other for other in self._instances if other.url == health.get("leader")), None)
            if leader is not None:
                return leader
        return None

    # clients

    def _client(self, index: int) -> None:
        dice = random.Random(f"{self.options.seed} {index}")
        number = 0
        while time.monotonic() < self._ends_s:
            number += 1
            subject = f"client{index}-{number}"
            text = json.dumps({"type": "fixed", "name": f"F{index}x{number}", "size": 1})
            answer = self._until_answered(dice, "POST", f"/subjects/{subject}/versions", {"schema": text}, _is_done)
            with self._lock:
                self.outcome.texts[answer["id"]].add(text)
            if dice.random() < DELETED:
                self._delete(dice, subject)
                with self._lock:
                    self.outcome.deleted[subject] = answer["id"]
            else:
                with self._lock:
                    self.outcome.held[subject] = (answer["id"], text)

    def _delete(self, dice: random.Random, subject: str) -> None:
        # A repeated delete finds that the first attempt has succeeded.
        self._until_answered(dice, "DELETE", f"/subjects/{subject}", None, _is_done_or((40401, 40404)))
        self._until_answered(dice, "DELETE", f"/subjects/{subject}?permanent=true", None, _is_done_or((40401,)))

    def _until_answered(
        self, dice: random.Random, method: str, path: str, body: Any, is_final: Callable[[int, Any], bool]
    ) -> Any:
        start_s = time.monotonic()
        while True:
            try:
                status, answer = dice.choice(self._instances).request(method, path, body)
            except OSError:
                status, answer = 0, None
            if status and is_final(status, answer):
                self.outcome.longest_s = max(self.outcome.longest_s, time.monotonic() - start_s)
                return answer
            if status and status < 500:
                self.outcome.problems.append(f"{method} {path}: {status} {answer}")
                raise SystemExit
            if time.monotonic() - start_s > SETTLE_SECONDS:
                self.outcome.problems.append(f"{method} {path} is not answered: {status} {answer}")
                raise SystemExit
            time.sleep(RETRY_SECONDS)

    # judgement

    def _judge(self) -> None:
        outcome = self.outcome
        for schema_id, texts in outcome.texts.items():
            if len(texts) > 1:
                outcome.problems.append(f"id {schema_id} was given to {len(texts)} schemas: {sorted(texts)}")
        dice = random.Random(0)
        self._until_answered(dice, "POST", "/subjects/last/versions", {"schema": '"int"'}, _is_done)
        for each in self._instances:
            listed = self._listed(each)
            expected = {subject: schema_id for subject, (schema_id, _) in outcome.held.items()}
            found = {entry["subject"]: entry["id"] for entry in listed if entry["subject"].startswith("client")}
            for subject in expected.keys() - found.keys():
                outcome.problems.append(f"{each.url} has lost {subject}")
            for subject in found.keys() - expected.keys():
                outcome.problems.append(f"{each.url} has {subject} again, which was deleted")
            for subject in expected.keys() & found.keys():
                if expected[subject] != found[subject]:
                    outcome.problems.append(f"{subject} had the id {expected[subject]} and has {found[subject]}")

    def _listed(self, instance: Instance) -> list[dict[str, Any]]:
        deadline_s = time.monotonic() + SETTLE_SECONDS
        while True:
            try:
                status, answer = instance.request("GET", "/schemas?deleted=true")
                if status == 200 and any(entry["subject"] == "last" for entry in answer):
                    return list(answer)
            except OSError:
                pass
            if time.monotonic() > deadline_s:
                self.outcome.problems.append(f"{instance.url} does not answer in the end")
                return []
            time.sleep(RETRY_SECONDS)


def _is_done(status: int, answer: Any) -> bool:
    return status == 200


def _is_done_or(codes: tuple[int, ...]) -> Callable[[int, Any], bool]:
    return lambda status, answer: status == 200 or answer.get("error_code") in codes


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m nemesis.registry", description="Kills beneath the schema registry."
    )
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    outcome = Run(Options(seconds=chosen.seconds, clients=chosen.clients, seed=chosen.seed)).run()
    print(
        f"{outcome.kills} kills, {len(outcome.held)} schemas registered, {len(outcome.deleted)} of others deleted, "
        f"the longest request took {outcome.longest_s:.1f} s"
    )
    for problem in outcome.problems[:20]:
        print(problem)
    if outcome.problems:
        print(f"{len(outcome.problems)} problems; seed {chosen.seed}")
        return 1
    print("nothing lost, nothing twice, nothing back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
