"""Puts the real clock, randomness, files, network, threads and workers together."""

from __future__ import annotations

from millbeck.host.clock import HostClock
from millbeck.host.files import HostFiles
from millbeck.host.linux import IS_LINUX
from millbeck.host.network import HostNetwork
from millbeck.host.randomness import HostRandomness
from millbeck.host.threads import HostThreads
from millbeck.host.workers import HostWorkers
from millbeck.kernel.environment import Environment


def real_environment(*, portable: bool = False, thread_count: int = 8) -> Environment:
    """The machine this process runs on. ``portable`` does without everything that only Linux has."""
    is_linux = IS_LINUX and not portable
    files = HostFiles(is_linux=is_linux)
    return Environment(
        clock=HostClock(),
        randomness=HostRandomness(),
        files=files,
        network=HostNetwork(is_linux=is_linux),
        threads=HostThreads(thread_count=thread_count),
        workers=HostWorkers(files, in_processes=not portable),
    )
