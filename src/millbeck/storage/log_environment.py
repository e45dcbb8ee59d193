"""The environment that the logs of a log directory share, and the interface to that directory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from millbeck.kernel.environment import Files
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState


class LogHome(Protocol):
    """The interface of a log to its log directory."""

    def securing_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        """The job that raises the recovery point on disk to at least ``offset``, which the log's recovery point must
        have reached.

        None when it is that high already. The job syncs and raises OSError.
        """

    def failed(self, reason: str) -> None:
        """Take the whole directory offline after a failure that makes the disk untrustworthy."""

    def went_offline(self, log: LogState) -> None:
        """Called when the log has gone offline."""

    def wants_flush(self, log: LogState) -> None:
        """Called when the log accepts no more writes until it is flushed (`Log.must_settle`)."""

    def raising_job(self, log: LogState) -> Callable[[], None] | None:
        """The job that makes the log start offset durable before segments below it are deleted.

        None when the checkpoints on disk have it already. The job syncs and raises OSError.
        """

    def lowering_job(self, log: LogState, offset: int) -> Callable[[], None] | None:
        """The job that lowers the checkpoints on disk to at most ``offset`` before the log is truncated there.

        None when no checkpoint is higher. The job syncs and raises OSError.
        """


class LogEnvironment:
    """The environment that the logs of a log directory share."""

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
