"""The example of a cluster, and the examples in Java on Apache Kafka's own client."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from millbeck.client.admin.results import ConfigChange, ConfigResource, ResourceType
from millbeck.client.sync import Admin, Producer
from millbeck.testing.broker_process import Broker, broker
from millbeck.testing.topics import create_topic
from tools import peers

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PORTS = 13
QUIET_SECONDS = "6"


def free_ports() -> int:
    """The first of several free ports."""
    for first in range(21_000, 40_000, 50):
        try:
            for port in range(first, first + PORTS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first
    raise OSError("no ports are free")


@pytest.mark.long
def test_a_cluster_of_three(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(EXAMPLES / "cluster/cluster.sh"), str(tmp_path), str(free_ports())],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert re.search(r"orders", done.stdout)
    assert "share.delivery.count.limit" in done.stdout


def run_java(node: Broker, program: str, *arguments: str) -> list[str]:
    classes = f"{peers.peer_path('kafka-streams')}/*"
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, str(EXAMPLES / program), node.bootstrap, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.long
def test_the_examples_in_java() -> None:
    try:
        peers.peer_path("kafka-streams")
    except peers.PeerUnavailable as error:
        pytest.skip(str(error))
    settings = {
        "num.partitions": "1",
        "group.share.heartbeat.interval.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "1000",
    }
    with broker(settings) as node:
        for topic in ("orders", "enriched-orders", "image-jobs"):
            create_topic(node.bootstrap, topic)
        assert "order-2 is at offset 2 of partition 0" in run_java(node, "produce-consume/Produce.java", "3")
        consumed = run_java(node, "produce-consume/Consume.java", QUIET_SECONDS)
        assert consumed == ["0 apples", "1 apples", "2 apples"]
        run_java(node, "transactions/Enrich.java", QUIET_SECONDS)
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            group = ConfigResource(ResourceType.GROUP, "image-processors")
            admin.incremental_alter_configs({group: [ConfigChange(name="share.auto.offset.reset", value="earliest")]})
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            for job in (b"cat.png", b"busy.png", b"broken.png"):
                producer.send_nowait("image-jobs", job)
        assert sorted(run_java(node, "share-consumer/Work.java", QUIET_SECONDS)) == ["busy.png", "cat.png"]
