"""What the system counts is shown under its names, and nothing where it is not told."""

from __future__ import annotations

from millbeck.kernel.metrics import Registry
from millbeck.server.metrics.process import declare_process_metrics
from millbeck.server.network.request_memory import ReplyMemory


class Slow:
    def close(self, reason: str) -> None: ...


def test_what_is_told_is_shown() -> None:
    registry, replies = Registry(), ReplyMemory(100)
    declare_process_metrics(registry, lambda: {"process_open_fds": 7, "disk_read_bytes": 4096}, replies)
    replies.holds(Slow(), 200)
    replies.holds(Slow(), 60)
    lines = registry.render().splitlines()
    assert "process_open_fds 7" in lines
    assert "kafka_server_kafkaserver_linux_disk_read_bytes 4096" in lines
    assert not any(line.startswith("process_max_fds ") for line in lines)
    assert "millbeck_reply_bytes_held 60" in lines
    assert "millbeck_slow_readers_closed_total 1" in lines


def test_a_process_that_is_somebody_elses_is_not_counted() -> None:
    registry = Registry()
    declare_process_metrics(registry, None, ReplyMemory())
    assert "process_" not in registry.render()
