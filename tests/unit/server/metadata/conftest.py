"""A metadata log on a simulated disk, with the driver on it: started, killed, and started again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar, TypeVarTuple

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import ZERO_UUID
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import MetadataImage
from millbeck.server.metadata.loading import open_metadata_log
from millbeck.server.metadata.quorum_driver import MetadataLogFailed, QuorumDriver
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.metadata.snapshots import SnapshotOptions
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.randomness import SimRandomness
from millbeck.storage.atomic_file import read_file
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class StillClock:
    """Time passes only when a test says so."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000
        self.step_ms = 0
        """How long whatever is timed seems to take."""

    def wall_ns(self) -> int:
        return self.wall_ms() * 1_000_000

    def busy_seconds(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        self.now_ms += self.step_ms
        return self.now_ms / 1000

    def wall_ms(self) -> int:
        self.now_ms += 1
        return self.now_ms


class TurnThreads:
    """Jobs run on the loop, two turns later: whatever is ready by then comes first."""

    def run(self, job: Callable[[*Ts], T], *arguments: *Ts) -> Awaitable[T]:
        async def later() -> T:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return job(*arguments)

        return later()


class MetadataNode:
    """One machine: its disk outlives the drivers that run on it."""

    root = "/data"
    directory = "/data/__cluster_metadata-0"

    def __init__(self, seed: int = 1) -> None:
        self.disk = SimDisk(random.Random(seed))
        self.clock = StillClock()
        self.files = self.disk.mount()
        self.files.make_directory(self.root)
        self.files.sync_directory("/")
        self.published: list[tuple[MetadataImage, MetadataDelta]] = []
        self.fatal: list[MetadataLogFailed] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.logs: LogDirectory | None = None

    def make(self, *, node_id: int = 1, **options: Any) -> QuorumDriver:
        """A new process on the same disk, not started yet."""
        self.disk.unmount(self.files)
        self.files = self.disk.mount()
        unused: Any = None
        environment = Environment(
            clock=self.clock,
            randomness=SimRandomness(random.Random(7)),
            files=self.files,
            network=unused,
            threads=TurnThreads(),
            workers=unused,
        )
        self.logs = LogDirectory(
            self.files,
            self.root,
            cache=FileCache(self.files, 100),
            index_cache=IndexCache(),
            jitter_below=lambda bound: 0,
            on_failure=lambda reason: None,
        )
        log = open_metadata_log(self.logs, now_ms=self.clock.wall_ms())
        self.published.clear()
        settings = QuorumSettings(
            directory_id=options.pop("directory_id", ZERO_UUID),
            can_vote=options.pop("can_vote", True),
            listeners=options.pop("listeners", ()),
        )
        driver = QuorumDriver(
            environment,
            log,
            node_id=node_id,
            voters=options.pop("voters", (node_id,)),
            spawn=self._spawn,
            on_fatal=self.fatal.append,
            snapshot_options=SnapshotOptions(**options) if options else None,
            settings=settings,
        )

        async def publish(image: MetadataImage, delta: MetadataDelta) -> None:
            self.published.append((image, delta))

        driver.subscribe(publish)
        return driver

    async def started(self, **options: Any) -> QuorumDriver:
        driver = self.make(**options)
        await driver.start()
        return driver

    async def wait_for_tasks(self) -> None:
        """Until every task is done."""
        while pending := [task for task in self.tasks if not task.done()]:
            await asyncio.wait(pending)

    def kill(self) -> None:
        """Kill -9: tasks stop where they are; the page cache stays."""
        for task in self.tasks:
            task.cancel()
        self.tasks.clear()

    def content(self, name: str) -> bytes:
        path = f"{self.directory}/{name}"
        content = read_file(self.disk.mount(), path, 1 << 30)
        assert content is not None, f"{name} is not there"
        return content

    def names(self) -> list[str]:
        return self.disk.mount().names(self.directory)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine))


@pytest.fixture
def metadata_node() -> MetadataNode:
    return MetadataNode()


@pytest.fixture
def metadata_node_for() -> Callable[[int], MetadataNode]:
    """A node whose disk loses and keeps by a seed."""
    return MetadataNode
