"""Metrics of the process: operating system statistics, and the memory held by unsent responses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from millbeck.kernel.metrics import Registry, Rows
from millbeck.server.network.request_memory import ReplyMemory

Numbers = Callable[[], Mapping[str, float]]
"""As in `host.process.process_numbers`; statistics that the system does not provide are missing."""

_GAUGES: Final = (
    ("process_open_fds", "process_open_fds", "Number of open files and sockets."),
    ("process_max_fds", "process_max_fds", "Maximum number of open files and sockets."),
    ("process_resident_memory_bytes", "process_resident_memory_bytes", "Resident memory of the process in bytes."),
    ("kafka_server_kafkaserver_linux_disk_read_bytes", "disk_read_bytes", "Bytes that the process read from disks."),
    ("kafka_server_kafkaserver_linux_disk_write_bytes", "disk_write_bytes", "Bytes that the process wrote to disks."),
)


def declare_process_metrics(registry: Registry, numbers: Numbers | None, replies: ReplyMemory) -> None:
    """Declare the process metrics; ``numbers`` is None when the node is embedded in another process."""
    registry.gauge(
        "millbeck_reply_bytes_held", "Bytes of responses that wait to be read by slow clients."
    ).child().read = lambda: replies.held_bytes
    registry.callback_counter(
        "millbeck_slow_readers_closed_total",
        "Connections of slow clients closed because unread responses held too much memory.",
        [],
        lambda: [((), replies.closed_count)],
    )
    if numbers is None:
        return
    for metric, name, help_text in _GAUGES:
        registry.callback_gauge(metric, help_text, [], _rows(numbers, name))
    registry.callback_counter(
        "process_cpu_seconds_total",
        "CPU time of the process in seconds.",
        [],
        _rows(numbers, "process_cpu_seconds_total"),
    )


def _rows(numbers: Numbers, name: str) -> Callable[[], Rows]:
    return lambda: [((), number) for each, number in numbers().items() if each == name]
