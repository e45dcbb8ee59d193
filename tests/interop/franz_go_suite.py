"""franz-go's own integration tests against one node and against three: `python -m tests.interop.franz_go_suite`.

The suite is the client's, built from the pinned module into one test binary (`tools.peers`, "franz-go-suite") and told
by its environment where the cluster is: chains of groups, transactions and share groups that pass every record on, and
with KGO_TEST_CHAOS connections that die after about a second. One node has a listener with SCRAM as well. A run passes
when every test did, when enough of them ran at all, and when none was skipped but those that need a listener with TLS,
or on three nodes with SCRAM.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.systems import SYSTEMS, Node
from bench.systems.node import free_ports
from millbeck.client.admin import Admin
from millbeck.client.admin.users import NewCredential
from millbeck.security.sasl.scram_messages import ScramMechanism
from tests.interop.cluster import Cluster
from tools import peers

NEEDS_TLS = re.compile(r"TLS|Tls")
NEEDS_TLS_OR_SCRAM = re.compile(r"SCRAM|TLS|Scram|Tls")
USER, PASSWORD = "suite", "the suite's secret"
# Kafka lists the oldest versions of Produce for a client's sake and takes none of them; this test goes by the list.
SKIPPED_BESIDE_KAFKA = {"TestIssueProduceBrokerTooOldFailsRecords"}
# It counts topics until it has seen as many as it wrote to, and may count __consumer_offsets, which others write to.
RACES = {"Test848RegexBrokerResolves"}
TESTS_MIN = 400
PACKAGE = "vendor/github.com/twmb/franz-go/pkg/kgo"
SETTINGS = {
    # As the suite's authors set it: what is released, left behind and killed on purpose adds up to more than five.
    "group.share.delivery.count.limit": "10",
    "share.coordinator.state.topic.num.partitions": "5",
}
REPLICATED = {
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The tests by what became of them, subtests included."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    skipped: tuple[str, ...]
    has_ended: bool
    """Whether the binary came to its own end: a panic or its time limit leave tests without a word."""

    def problems(self, *, tests_min: int, has_scram: bool = False) -> list[str]:
        problems = [f"{name} failed" for name in self.failed]
        may_skip = NEEDS_TLS if has_scram else NEEDS_TLS_OR_SCRAM
        allowed = [name for name in self.skipped if may_skip.search(name) or name in SKIPPED_BESIDE_KAFKA]
        problems += [f"{name} was skipped" for name in self.skipped if name not in allowed]
        if not self.has_ended:
            problems.append("the suite did not come to its end")
        if len(self.passed) < tests_min:
            problems.append(f"empty: only {len(self.passed)} tests passed, not {tests_min}")
        return problems


def read_outcome(text: str) -> Outcome:
    """From what a test binary prints with -test.v. Tests print to the same place, so a verdict may begin mid-line."""
    found: dict[str, list[str]] = {"PASS": [], "FAIL": [], "SKIP": []}
    for verdict, name in re.findall(r"--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)", text):
        found[verdict].append(name)
    return Outcome(
        passed=tuple(found["PASS"]),
        failed=tuple(found["FAIL"]),
        skipped=tuple(found["SKIP"]),
        has_ended=re.search(r"^(PASS|FAIL)$", text, re.MULTILINE) is not None and "panic: " not in text,
    )


@contextmanager
def cluster_of(system: str, node_count: int, directory: Path) -> Iterator[dict[str, str]]:
    """The environment that names a running cluster to the suite."""
    if node_count == 3:
        with Cluster(system, directory, overrides=SETTINGS | REPLICATED) as cluster:
            yield {"KGO_SEEDS": cluster.bootstrap}
        return
    node: Node = SYSTEMS[system](directory / "node-1")
    (port,) = free_ports(1)
    own = node.properties()
    node.overrides = SETTINGS | {
        "listeners": f"{own['listeners']},SCRAM://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port},SCRAM://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    with node:
        asyncio.run(_create_user(node.bootstrap))
        yield {
            "KGO_SEEDS": node.bootstrap,
            "KGO_TEST_SCRAM_SEEDS": f"127.0.0.1:{port}",
            "KGO_TEST_SCRAM": f"{USER}:{PASSWORD}:256",
        }


async def _create_user(bootstrap: str) -> None:
    credential = NewCredential(mechanism=ScramMechanism.SHA_256, password=PASSWORD)
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        (await admin.alter_users({USER: credential})).all()


def run_suite(chosen: argparse.Namespace, node_count: int, has_chaos: bool) -> bool:
    binary = peers.install("franz-go-suite")
    directory = Path(tempfile.mkdtemp(prefix="franz-go-", dir=chosen.directory))
    log = directory / "suite.log"
    settings: Mapping[str, str] = {
        "KGO_TEST_RF": str(node_count),
        "KGO_TEST_RECORDS": str(chosen.records),
        "KGO_TEST_CHAOS": "1" if has_chaos else "0",
    }
    title = f"{chosen.system}, {node_count} nodes, {chosen.records} records{', chaos' if has_chaos else ''}"
    print(f"franz-go's tests: {title}", flush=True)
    started_s = time.monotonic()
    with cluster_of(chosen.system, node_count, directory) as seeds, log.open("wb") as out:
        subprocess.run(
            [str(binary), "-test.v", f"-test.run={chosen.run}", f"-test.timeout={chosen.timeout_s}s"],
            cwd=binary.parent / PACKAGE,
            env=os.environ | settings | seeds,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    outcome = read_outcome(log.read_text(errors="replace"))
    problems = outcome.problems(tests_min=TESTS_MIN if chosen.run == "." else 1, has_scram=node_count == 1)
    print(
        f"  {len(outcome.passed)} passed, {len(outcome.failed)} failed, {len(outcome.skipped)} skipped"
        f" ({', '.join(outcome.skipped)}) in {time.monotonic() - started_s:.0f} s"
    )
    for problem in problems:
        print(f"  PROBLEM {problem}")
    if chosen.run == "." and problems and set(problems) <= {f"{name} failed" for name in RACES}:
        print("  it is in a race with the others: again, alone", flush=True)
        alone = argparse.Namespace(**vars(chosen) | {"run": f"^({'|'.join(RACES)})$"})
        return run_suite(alone, node_count, has_chaos)
    if problems or chosen.keep:
        print(f"  the logs are in {directory}", flush=True)
    else:
        shutil.rmtree(directory, ignore_errors=True)
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.franz_go_suite", description=__doc__)
    parser.add_argument("--system", default="millbeck", choices=list(SYSTEMS))
    parser.add_argument("--nodes", type=int, choices=(1, 3), action="append", help="one node and three by default")
    parser.add_argument("--chaos", choices=("never", "only", "both"), default="both", help="connections that die")
    parser.add_argument("--records", type=int, default=50_000, help="through each chain of consumers")
    parser.add_argument("--run", default=".", help="only the tests that match")
    parser.add_argument("--timeout-s", type=int, default=1800)
    parser.add_argument("--keep", action="store_true", help="keep the logs of a run that passed, too")
    parser.add_argument("--directory", type=Path, help="where data and logs are put")
    chosen = parser.parse_args()
    ways = {"never": (False,), "only": (True,), "both": (False, True)}[chosen.chaos]
    try:
        passed = [run_suite(chosen, count, chaos) for count in chosen.nodes or (1, 3) for chaos in ways]
    except peers.PeerUnavailable as missing:
        print(f"franz-go's tests: {missing}", file=sys.stderr)
        return 1
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
