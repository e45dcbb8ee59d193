"""More connections than the process may have descriptors: logs go on being rolled and synced, and the node lives.

Run by ``make fuzz``.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.e2e.server_process import ServerProcess, free_ports

OPEN_FILES_MAX = 1024
CONNECTIONS = 1300
PARTITIONS = 40
ROUNDS = 60
VALUE_BYTES = 60_000


def test_connections_take_no_descriptors_from_logs(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "log.segment.bytes": "1048576",
    }
    node = ServerProcess(tmp_path, settings)
    node.open_files_max = OPEN_FILES_MAX
    node.format("AAAAAAAAAAAAAAAAAAAAKg", "-s")
    node.start()
    failures: list[str] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    try:
        bootstrap: dict[str, str | int | float | bool] = {"bootstrap.servers": f"127.0.0.1:{port}"}
        admin = AdminClient(bootstrap)
        admin.create_topics([NewTopic("t", PARTITIONS, 1)])["t"].result(30)
        producer = Producer({**bootstrap, "batch.size": 100_000, "acks": "all"})
        for partition in range(PARTITIONS):
            producer.produce("t", b"first", partition=partition, on_delivery=on_delivery)
        assert producer.flush(30) == 0
        with ExitStack() as stack:
            for _ in range(CONNECTIONS):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            for _ in range(ROUNDS):
                for partition in range(PARTITIONS // 2):
                    producer.produce("t", os.urandom(VALUE_BYTES), partition=partition, on_delivery=on_delivery)
                assert producer.flush(60) == 0
        assert failures == []
        assert node.is_running
        assert "offline" not in node.said()
        assert "the limit of open files" in node.said()
    finally:
        node.stop()
