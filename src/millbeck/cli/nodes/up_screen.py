"""The text that ``millbeck up`` prints when its nodes are ready: addresses and example commands, within 80 × 24
characters."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from millbeck.cli.connection_options import DEFAULT_BOOTSTRAP
from millbeck.cli.nodes.ports import WILDCARDS
from millbeck.server.local.secured import DIRECTORY

if TYPE_CHECKING:
    from millbeck.server.node import Node


def screen(node: Node, directory: str | None, registry: str = "") -> str:
    """The screen of one node; ``registry`` is the URL of its schema registry, or the command that installs it."""
    listener = node.listeners[0]
    is_open = listener.address.host in WILDCARDS
    address = address_of(node)
    lines = ["", "  millbeck is up", "", f"    bootstrap    {address}"]
    if is_open:
        lines.append(f"    listens      on every interface, without login: {socket.gethostname()}:{listener.port}")
    lines += [
        f"    data         {directory or 'in memory, lost on exit'}",
        f"    metrics      http://127.0.0.1:{node.metrics_port}/metrics",
        *([f"    registry     {registry}"] if registry else []),
        "",
        *_shell(address),
        *_python(address),
        "  PySpark: millbeck's format without a jar, or Spark's own",
        "    from millbeck.pipeline.session import spark_session",
        '    rows = spark_session().readStream.format("millbeck")  # or .format("kafka")',
        f'    rows.option("kafka.bootstrap.servers", "{address}")',
        "  To read: docs/testing.md, docs/pipeline.md, docs/operations.md",
        "  Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def address_of(node: Node) -> str:
    """The address for clients on this host."""
    listener = node.listeners[0]
    host = "localhost" if listener.address.host in WILDCARDS else listener.address.host
    return f"{f'[{host}]' if ':' in host else host}:{listener.port}"


def cluster_screen(
    host: str, answers: Sequence[dict[str, int]], *, data: str, failover: str, registry: str = ""
) -> str:
    """The screen of several nodes; ``answers`` has the ports of each, and ``registry`` is as for one node."""
    first = bootstrap_of(host, answers[:1])
    lines = [
        "",
        f"  millbeck is up: {len(answers)} nodes",
        "",
        f"    bootstrap    {bootstrap_of(host, answers)}",
        f"    data         {data}",
        _metrics_of(answers),
        *([f"    registry     {registry}"] if registry else []),
        f"    failover     {failover}",
        "",
        *_shell(first),
        *_python(first),
        "  Nodes, from another terminal",
        "    millbeck up status",
        "    millbeck up kill 2; millbeck up start 2",
        "  To read: docs/cluster.md, docs/testing.md",
        "",
        "  Ctrl-C stops all of them.",
    ]
    return "\n".join(lines)


def bootstrap_of(host: str, answers: Sequence[dict[str, int]]) -> str:
    """The addresses of several nodes."""
    shown = f"[{host}]" if ":" in host else host
    return ",".join(f"{shown}:{answer['port']}" for answer in answers)


def _metrics_of(answers: Sequence[dict[str, int]]) -> str:
    ports = ", ".join(str(answer["metrics_port"]) for answer in answers)
    return f"    metrics      http://127.0.0.1:PORT/metrics, ports {ports}"


def secure_screen(node: Node, data: str, *, is_memory: bool, registry: str = "") -> str:
    """The screen of one node with TLS, logins and ACLs; ``registry`` as for one without."""
    lines = [
        "",
        "  millbeck is up: TLS, logins (SCRAM-SHA-512) and ACLs",
        "",
        f"    bootstrap    {address_of(node)}",
        f"    metrics      http://127.0.0.1:{node.metrics_port}/metrics",
        *([f"    registry     {registry}"] if registry else []),
        *_secured(address_of(node), data, is_memory=is_memory, registry=registry),
        "  Ctrl-C stops it.",
    ]
    return "\n".join(lines)


def secure_cluster_screen(
    host: str, answers: Sequence[dict[str, int]], *, data: str, is_memory: bool, registry: str = ""
) -> str:
    """The screen of several nodes with TLS, logins and ACLs."""
    lines = [
        "",
        f"  millbeck is up: {len(answers)} nodes with TLS, logins (SCRAM-SHA-512) and ACLs",
        "",
        f"    bootstrap    {bootstrap_of(host, answers)}",
        _metrics_of(answers),
        *([f"    registry     {registry}"] if registry else []),
        *_secured(bootstrap_of(host, answers[:1]), data, is_memory=is_memory, registry=registry),
        "  Ctrl-C stops all of them.  millbeck up status  shows them.",
    ]
    return "\n".join(lines)


def _secured(address: str, data: str, *, is_memory: bool, registry: str) -> list[str]:
    """The directory of the files for clients, and example commands that use them."""
    lost = ["                 in memory, lost on exit"] if is_memory else []
    return [
        f"    data         {data}",
        *lost,
        "    users        app: every topic and group; admin: everything",
        "",
        "  Files for clients, in another terminal",
        f"    cd {shlex.quote(os.path.join(data, DIRECTORY))}",
        "    echo hello | millbeck produce greetings --command-config app.properties",
        "    kcat -F app.kcat.conf -C -t greetings -e",
        f"    kafka-console-consumer.sh --bootstrap-server {address} \\",
        "      --topic greetings --from-beginning --command-config app.properties",
        *([f"    curl -K app.curl {registry}/subjects"] if registry.startswith("https:") else []),
        "  Python: pip install confluent-kafka",
        "    import json; from confluent_kafka import Producer",
        '    p = Producer(json.load(open("app.json")))',
        '    p.produce("greetings", b"hello"); p.flush()',
        "  To read: docs/security.md",
    ]


def _shell(address: str) -> list[str]:
    export = [] if address == DEFAULT_BOOTSTRAP else [f"    export MILLBECK_BOOTSTRAP={address}"]
    return [
        "  Shell, in another terminal",
        *export,
        "    echo hello | millbeck produce greetings",
        "    millbeck consume greetings --from-beginning",
    ]


def _python(address: str) -> list[str]:
    return [
        "  Python: pip install confluent-kafka",
        "    from confluent_kafka import Producer",
        f'    p = Producer({{"bootstrap.servers": "{address}"}})',
        '    p.produce("greetings", b"hello"); p.flush()',
    ]
