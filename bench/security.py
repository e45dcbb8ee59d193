"""`python -m bench.security`: what decisions of the authorizer, logins and quotas cost and hold to.

The goals: with 10,000 ACLs a decision takes at most 1 µs from the cache and 20 µs without it, and adds at most 0.5 µs
to a request; a change of ACLs blocks the event loop for at most 5 ms at a time. 500 clients log in a second by SCRAM,
each for at most 150 µs of the broker's processor beyond its connection, while the loop is late by less than 20 ms. A
byte rate is within 5 % of its quota over 60 s, and within 5 % of what Apache Kafka gives the same client.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from types import SimpleNamespace
from typing import Any, cast

from confluent_kafka import Producer

from bench import machine
from bench.budgets import Row
from bench.report import stamp, write_section
from bench.systems import SYSTEMS, Node
from bench.systems.millbeck import Millbeck, cli_command
from bench.systems.node import process_usage
from bench.tls import loop_lag_ms, row, table
from bench.worker import run_load
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import AllowAll, Operation, PatternType, Permission, ResourceType
from millbeck.security.principal import Principal
from millbeck.security.standard_authorizer import CACHED_DECISIONS_MAX, StandardAuthorizer
from millbeck.server.network.call import Call
from tools import peers

ACLS = 10_000
DECISIONS = 20_000
ROUNDS = 7
LOGINS_PER_SECOND = 500
LOGIN_SECONDS = 20
PASSWORD = "bench-secret"
QUOTA_BYTES = 5_000_000
QUOTA_SKIPPED_S = 11
QUOTA_SECONDS = 60
QUOTA_RECORD_BYTES = 10_000
ALICE = Principal("User", "alice")


def _report(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


# decisions


def _entries(dice: Random) -> Iterator[AccessControlEntry]:
    for number in range(ACLS):
        is_prefixed = dice.random() < 0.2
        yield AccessControlEntry(
            resource_type=ResourceType.TOPIC,
            resource_name=f"team-{number % 500}." if is_prefixed else f"team-{number % 500}.topic-{number}",
            pattern_type=PatternType.PREFIXED if is_prefixed else PatternType.LITERAL,
            principal=f"User:{dice.choice(('alice', 'bob', 'carol'))}",
            host="*",
            operation=dice.choice((Operation.READ, Operation.WRITE, Operation.ALL)),
            permission_type=Permission.DENY if dice.random() < 0.1 else Permission.ALLOW,
        )


def _per_call_us(call: Callable[[str], object], names: list[str]) -> float:
    """The median over rounds of what one call takes."""
    found = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        for name in names:
            call(name)
        found.append((time.perf_counter() - began) / len(names) * 1e6)
    return median(found)


def _call(authorizer: object) -> Call:
    """A call as the handlers of produce and fetch have it, with no more around it than `Call.may` looks at."""
    call = Call.__new__(Call)
    broker = SimpleNamespace(authorizer=authorizer, decisions=SimpleNamespace(logs_allowed=False))
    call.broker = cast(Any, broker)
    call.connection = cast(Any, SimpleNamespace(principal=ALICE, peer_host="127.0.0.1"))
    return call


def decisions() -> list[Row]:
    entries = list(_entries(Random(1)))
    gc.freeze()  # as a node does
    authorizer = StandardAuthorizer()
    longest = _longest_step_ms(authorizer.replace(entries))
    authorizer.is_loaded = True
    hosts = ("127.0.0.1",)
    names = [f"team-{number % 500}.topic-{number}" for number in range(DECISIONS)]

    def ask(name: str) -> bool:
        return authorizer.authorize(ALICE, hosts[0], Operation.READ, ResourceType.TOPIC, name)

    def ask_anew(name: str) -> bool:
        authorizer._decide(ALICE.text, hosts[0], ResourceType.TOPIC, name)
        return True

    uncached = _per_call_us(ask_anew, names[: CACHED_DECISIONS_MAX // 2])
    some = names[:500]
    cached = _per_call_us(ask, some * 40)
    allowed = [name for name in some if ask(name)]
    plain, secured = _call(AllowAll()), _call(authorizer)
    added = []
    for _ in range(ROUNDS):
        pair = [
            _per_call_us(lambda name, call=call: call.may(Operation.READ, ResourceType.TOPIC, name), allowed * 40)  # type: ignore[misc]
            for call in (plain, secured)
        ]
        added.append(pair[1] - pair[0])
    changed = []
    for entry in entries[:200]:
        began = time.thread_time()
        authorizer.change([entry], [entry])
        changed.append((time.thread_time() - began) * 1000)
    return [
        row(f"a decision with {ACLS:,} ACLs, cached", cached, 1, "µs"),
        row(f"a decision with {ACLS:,} ACLs, not cached", uncached, 20, "µs"),
        row("what authorization adds to a request for one topic", median(added), 0.5, "µs"),
        row(f"the longest turn while {ACLS:,} ACLs are loaded", longest, 5, "ms"),
        row("the longest turn of 200 changes of one ACL", max(changed), 5, "ms"),
    ]


def _longest_step_ms(steps: Iterator[None]) -> float:
    longest = 0.0
    while True:
        began = time.thread_time()
        is_done = next(steps, True)
        longest = max(longest, (time.thread_time() - began) * 1000)
        if is_done:
            return longest


# logins


def logins(directory: Path, *, broker_core: int | None, client_core: int | None) -> list[Row]:
    node = Millbeck(directory / "logins", core=broker_core)
    listeners = f"PLAINTEXT://127.0.0.1:{node.port},LOGIN://127.0.0.1:{node.behind_proxy_port}"
    node.overrides |= {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    password_file = directory / "password"
    password_file.write_text(PASSWORD)
    measured = {}
    with node:
        command = (
            "user",
            "create",
            "bench",
            "--mechanism",
            "SCRAM-SHA-256",
            "--password-file",
            str(password_file),
            "--bootstrap-server",
            node.bootstrap,
        )
        subprocess.run(cli_command(*command), env=node.environment(), check=True, timeout=60, capture_output=True)
        for logs_in in (False, True, False, True):
            before = process_usage(node.pid).cpu_seconds
            load = run_load(
                "pace",
                module="bench.login_load",
                core=client_core,
                port=node.behind_proxy_port,
                rate=LOGINS_PER_SECOND,
                seconds=LOGIN_SECONDS,
                password=PASSWORD,
                logs_in=logs_in,
            )
            load["cpu_us"] = (process_usage(node.pid).cpu_seconds - before) / load["count"] * 1e6
            measured[logs_in] = load  # the second of each, which is warm
            _report(f"{'logins' if logs_in else 'connections'}: {load}")
        lag_ms = loop_lag_ms(node)
    return [
        Row(
            what="SCRAM-SHA-256 logins, a new connection each",
            measured=f"{measured[True]['per_second']:.0f} /s",
            budget=f"≥ {LOGINS_PER_SECOND * 0.99:.0f} /s",
            met=measured[True]["per_second"] >= LOGINS_PER_SECOND * 0.99,
        ),
        row(
            "broker's processor for a login beyond its connection",
            measured[True]["cpu_us"] - measured[False]["cpu_us"],
            150,
            "µs",
        ),
        row("loop lag p99 meanwhile", lag_ms, 20, "ms"),
    ]


# quotas


def quotas(directory: Path, systems: list[str], *, broker_core: int | None, client_core: int | None) -> list[Row]:
    rates = {}
    for system in systems:
        with SYSTEMS[system](directory / f"quota-{system}", core=broker_core) as node:
            rates[system] = _throttled_rate(node)
            _report(f"{system}: {rates[system] / 1e6:.3f} MB/s with a quota of {QUOTA_BYTES / 1e6:g} MB/s")
    ours = rates["millbeck"]
    rows = [row("produced under a byte rate, off its quota", abs(ours / QUOTA_BYTES - 1) * 100, 5, "%")]
    if "apache-kafka" in rates:
        rows.append(row("off what Apache Kafka gives", abs(ours / rates["apache-kafka"] - 1) * 100, 5, "%"))
    return rows


def _throttled_rate(node: Node) -> float:
    """Bytes per second of a producer that has a quota and more to send; of the values, after the first windows."""
    command = ("quota", "set", "--client-id", "bench", f"produce={QUOTA_BYTES}", "--bootstrap-server", node.bootstrap)
    subprocess.run(cli_command(*command), check=True, timeout=60, capture_output=True)
    delivered, is_over = 0, False

    def on_delivery(error: object, message: object) -> None:
        nonlocal delivered
        assert error is None or is_over, error
        delivered += QUOTA_RECORD_BYTES

    settings = {
        "bootstrap.servers": node.bootstrap,
        "client.id": "bench",
        "queue.buffering.max.kbytes": 20_000,
        "batch.size": 200_000,
        "delivery.timeout.ms": 300_000,
    }
    producer = Producer(settings)
    value = bytes(QUOTA_RECORD_BYTES)
    started = time.monotonic()
    counted_from: tuple[float, int] | None = None
    while (now := time.monotonic()) - started < QUOTA_SKIPPED_S + QUOTA_SECONDS:
        if counted_from is None and now - started >= QUOTA_SKIPPED_S:
            counted_from = now, delivered
        try:
            producer.produce("throttled", value, on_delivery=on_delivery)
        except BufferError:
            producer.poll(0.05)
        producer.poll(0)
    assert counted_from is not None
    since, before = counted_from
    rate = (delivered - before) / (time.monotonic() - since)
    is_over = True
    producer.purge()
    producer.flush(10)
    return rate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.security", description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["decisions", "logins", "quotas"])
    parser.add_argument("--without-kafka", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="do not write docs/benchmarks.md")
    chosen = parser.parse_args()
    broker_core, client_core = machine.cores()
    directory = machine.scratch_directory("bench-security-")
    systems = ["millbeck"] if chosen.without_kafka else ["millbeck", "apache-kafka"]
    lines = stamp(machine.facts(with_kafka := "quotas" in chosen.what and not chosen.without_kafka))
    if with_kafka:
        peers.install("kafka")
    rows: list[Row] = []
    try:
        if "decisions" in chosen.what:
            rows += decisions()
        if "logins" in chosen.what:
            rows += logins(directory, broker_core=broker_core, client_core=client_core)
        if "quotas" in chosen.what:
            rows += quotas(directory, systems, broker_core=broker_core, client_core=client_core)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    lines += table(rows)
    print("\n".join(lines))
    if not chosen.dry_run:
        write_section("security", lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
