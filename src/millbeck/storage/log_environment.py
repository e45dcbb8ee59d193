"""What all logs of a log directory share, and what they ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from millbeck.kernel.environment import Files
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache

if TYPE_CHECKING:
    from millbeck.storage.log import Log


class LogHome(Protocol):
    """What a log asks of the directory it lies in."""

    def securing_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        """The job after which the recovery point on disk is at least ``offset``, which the log's own has reached.

        None when it is. The job syncs and raises OSError."""

    def failed(self, reason: str) -> None:
        """The whole directory can no longer be trusted."""

    def went_offline(self, log: Log) -> None:
        """The log serves no more."""

    def wants_flush(self, log: Log) -> None:
        """The log takes no more writes until it is flushed (`Log.must_settle`)."""

    def raising_job(self, log: Log) -> Callable[[], None] | None:
        """The log's start has moved past segments that are about to go: the job that makes sure a crash knows it.

        None when the checkpoints on disk say so already. The job syncs and raises OSError."""

    def lowering_job(self, log: Log, offset: int) -> Callable[[], None] | None:
        """The log is about to be cut at ``offset``: the job after which no checkpoint on disk claims more.

        None when none does. The job syncs and raises OSError."""


class LogEnvironment:
    """What all logs of a log directory share."""

    __slots__ = ("cache", "files", "home", "index_cache", "jitter_below")

    def __init__(
        self,
        files: Files,
        cache: FileCache,
        index_cache: IndexCache,
        jitter_below: Callable[[int], int],
        home: LogHome,
    ) -> None:
        self.files = files
        self.cache = cache
        self.index_cache = index_cache
        self.jitter_below = jitter_below
        """A random integer in ``[0, bound)``, for ``segment.jitter.ms``."""
        self.home = home
