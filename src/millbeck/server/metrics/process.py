"""Metrics of the process: what the operating system counts, and what unread replies hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.request_memory import ReplyMemory

Numbers = Callable[[], Mapping[str, float]]
"""As of `host.process.process_numbers`; what the system does not tell is not there."""

_GAUGES: Final = (
    ("process_open_fds", "process_open_fds", "Open files and sockets."),
    ("process_max_fds", "process_max_fds", "How many files and sockets may be open."),
    ("process_resident_memory_bytes", "process_resident_memory_bytes", "Memory of the process that is in use."),
    ("kafka_server_kafkaserver_linux_disk_read_bytes", "disk_read_bytes", "Bytes the process has had read from disks."),
    ("kafka_server_kafkaserver_linux_disk_write_bytes", "disk_write_bytes", "Bytes it has had written to disks."),
)


def declare_process_metrics(registry: Registry, numbers: Numbers | None, replies: ReplyMemory) -> None:
    """``numbers`` is None where the process is not the node's own."""
    registry.gauge("millbeck_reply_bytes_held", "Bytes of replies that wait for slow readers.").child().read = lambda: (
        replies.held_bytes
    )
    registry.counter_from(
        "millbeck_slow_readers_closed_total",
        "Connections closed because unread replies held too much memory, theirs the most.",
        [],
        lambda: [((), replies.closed_count)],
    )
    if numbers is None:
        return
    for metric, name, help_text in _GAUGES:
        registry.gauge_from(metric, help_text, [], _rows(numbers, name))
    registry.counter_from(
        "process_cpu_seconds_total", "Processor time.", [], _rows(numbers, "process_cpu_seconds_total")
    )


def _rows(numbers: Numbers, name: str) -> Callable[[], Rows]:
    return lambda: [((), number) for each, number in numbers().items() if each == name]
