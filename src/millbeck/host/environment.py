"""The environment of a real node: clock, randomness, files, network, threads and workers."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Final

from millbeck.host.files import HostFiles
from millbeck.host.kerberos import HostKerberos
from millbeck.host.linux import IS_LINUX
from millbeck.host.loop_watch import watch_loop
from millbeck.host.network import HostNetwork
from millbeck.host.threads import HostThreads
from millbeck.host.workers import HostWorkers
from millbeck.kernel.environment import Environment

SCHEDULING: Final = "/proc/thread-self/schedstat"
"""Linux: nanoseconds the thread has run, and nanoseconds it was runnable but waited for a processor."""


class HostClock:
    """`monotonic` is the clock of asyncio's event loop, so that both can be compared."""

    monotonic = staticmethod(time.monotonic)
    wall_ns = staticmethod(time.time_ns)

    def __init__(self, scheduling: str = SCHEDULING) -> None:
        self._scheduling = scheduling

    def busy_seconds(self) -> float:
        """Processor time of the thread, plus the time it waited for a processor: a thread that waits is overloaded,
        not idle.
        """
        try:
            with open(self._scheduling, "rb") as file:
                waited_ns = int(file.read().split()[1])
        except (OSError, IndexError, ValueError):
            waited_ns = 0
        return time.thread_time() + waited_ns / 1e9

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


_DASH_SEXTET = 62  # "-" in URL-safe base64: such an id would look like a flag on a command line


class HostRandomness:
    def below(self, bound: int) -> int:
        return secrets.randbelow(bound)

    def uuid(self) -> bytes:
        while True:
            value = uuid.uuid4().bytes
            if value[0] >> 2 != _DASH_SEXTET:
                return value


def real_environment(*, portable: bool = False, thread_count: int = 8) -> Environment:
    """The environment of this machine. ``portable`` disables all features that exist only on Linux."""
    is_linux = IS_LINUX and not portable
    files = HostFiles(is_linux=is_linux)
    threads = HostThreads(thread_count=thread_count)
    return Environment(
        clock=HostClock(),
        randomness=HostRandomness(),
        files=files,
        network=HostNetwork(is_linux=is_linux, threads=threads),
        threads=threads,
        workers=HostWorkers(files, in_processes=not portable),
        kerberos=HostKerberos(),
        watch_loop=watch_loop,
    )
