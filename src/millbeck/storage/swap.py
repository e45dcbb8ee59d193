"""Swapping of compacted segments for their sources, so that after a crash the log has either the old or the new ones.

The steps, and the reason for their order (any part of what is not synced may be lost, in any order):

1. `compact` has written the new segments as ``.cleaned`` files and synced them. Until the next step is durable, a start
   removes them.
2. A thread writes the checkpoints, if needed (see below). On the event loop the files are renamed to ``.swap``; a
   thread syncs the directory. From then on a start completes the swap. If a crash leaves some files renamed and others
   not, the loader keeps the old segments from the first ``.cleaned`` on: segments are swapped in order or not at all,
   since a new segment may lack a tombstone whose older records are still in an older segment.
3. On the event loop, without yielding, the old files are renamed to ``.deleted`` and the new segments, still with their
   ``.swap`` names, replace them in memory. A reader of an old file has a lease and continues. A thread syncs the
   directory: the new files may get their final names only when no old name can come back after a crash; otherwise new
   and old files with overlapping offsets could exist together.
4. On the event loop the ``.swap`` suffix is removed; a thread syncs once more, and the old files are deleted later.

Recovery takes a gap below the recovery point for corruption, and compaction leaves gaps. So before the swap begins the
recovery point on disk is above all segments that it replaces, and recovery never reads them.

The log may change meanwhile. Segments that retention has removed are skipped. A truncation ends the swap first
(`complete_or_roll_back`): before step 3 it is rolled back, afterwards it is completed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from millbeck.storage.compaction.compactor import discard
from millbeck.storage.compaction.job import CompactionResult, NewSegment
from millbeck.storage.compaction.output import CLEANED_SUFFIX
from millbeck.storage.compaction.plan import CompactionPlan
from millbeck.storage.retention import FileDeletion, remove_segment, remove_snapshots
from millbeck.storage.segment import INDEX_SUFFIXES, LOG_SUFFIX, Segment, file_name

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

logger = logging.getLogger(__name__)

SWAP_SUFFIX: Final = ".swap"


class SwapState(Enum):
    NEW = "new"
    SECURED = "secured"  # the recovery point on disk is above the replaced segments
    NAMED = "named"  # the files are called .swap, which may not be durable
    INSTALLED = "installed"  # in use by the log; old names may still come back after a crash
    RENAMED = "renamed"  # the files have their final names
    DONE = "done"
    ABANDONED = "abandoned"  # rolled back; the .cleaned files are to be removed


class Swap:
    """One swap, driven by its owner: call `next_job` on the event loop, run its result on a thread, and repeat.

    `run` does all of it synchronously. A job never raises; its failure is handled by the next `next_job`. At the end
    ``state`` is DONE or ABANDONED and ``removals`` has the deletions to run after their delay.
    """

    __slots__ = ("_error", "_is_synced", "_log", "_new", "_pairs", "_plan", "removals", "state")

    def __init__(self, plan: CompactionPlan, outcome: CompactionResult) -> None:
        self._log: LogState = plan.log
        self._plan = plan
        self._pairs: list[tuple[NewSegment, list[Segment]]] = []
        at = 0
        for made in outcome.segments:
            self._pairs.append((made, plan.segments[at : at + made.source_count]))
            at += made.source_count
        self._new: list[Segment] = []
        self._error: OSError | None = None
        self._is_synced = False
        """Whether the directory was synced, so that no old name can come back."""
        self.state = SwapState.NEW
        self.removals: list[FileDeletion] = []

    def run(self) -> bool:
        """Run all steps synchronously; returns whether the compacted segments are in place."""
        job = self.next_job()
        while job is not None:
            job()
            job = self.next_job()
        return self.state is SwapState.DONE

    def next_job(self) -> Callable[[], None] | None:
        """Take the next step, on the event loop; returns the job that a thread must run before the following one, None
        at the end.
        """
        log = self._log
        if self._error is not None or log.offline_reason is not None:
            self._fail()
        if self.state is SwapState.NEW:
            return self._secure()
        if self.state in (SwapState.SECURED, SwapState.NAMED) and self._has_changed():
            if self.state is SwapState.NAMED:
                self._undo_names()
            self._end(SwapState.ABANDONED)
        if self.state is SwapState.SECURED:
            return self._name()
        if self.state is SwapState.NAMED:
            return self._install()
        if self.state is SwapState.INSTALLED:
            self._finalize()
            return self._sync
        if self.state is SwapState.RENAMED:
            self._end(SwapState.DONE)
        return self._discard_job() if self.state is SwapState.ABANDONED and self._pairs else None

    def complete_or_roll_back(self) -> None:
        """Roll back or complete the swap before the log is truncated; called on the event loop. Raises OSError.

        It syncs unless the job of `rollback_job` was run before.
        """
        if self.state is SwapState.INSTALLED:
            if not self._is_synced:
                self._log.environment.files.sync_directory(self._log.directory)
            self._finalize()
        elif self.state is not SwapState.RENAMED:
            if self.state is SwapState.NAMED:
                self._undo_names()
                self._log.durability.note_directory_changed()
            self._end(SwapState.ABANDONED)

    def rollback_job(self) -> Callable[[], None] | None:
        """The job that a thread should run before `complete_or_roll_back`, or None. It raises OSError.

        It ensures that no old file names come back after the truncation.
        """
        return self._sync_installed if self.state is SwapState.INSTALLED and not self._is_synced else None

    def _sync_installed(self) -> None:
        self._log.environment.files.sync_directory(self._log.directory)
        self._is_synced = True

    # The steps.

    def _secure(self) -> Callable[[], None]:
        log = self._log
        assert log.swap is None, "one swap of a log at a time"
        # An index that was found to be corrupt keeps the recovery point down until it is saved again.
        if self._has_changed() or log.recovery_point < self._plan.job.upper_offset:
            self._end(SwapState.ABANDONED)
            return self._discard_job()
        log.swap = self
        self.state = SwapState.SECURED
        job = log.environment.home.securing_job(log, self._plan.job.upper_offset)
        return self._name() if job is None else partial(self._attempt, job)

    def _name(self) -> Callable[[], None]:
        self.state = SwapState.NAMED
        try:
            for made, _ in reversed(self._pairs):
                self._rename(made, CLEANED_SUFFIX, SWAP_SUFFIX)
        except OSError as error:
            self._error = error
        return self._sync

    def _has_changed(self) -> bool:
        """Whether the log no longer has the compacted segments; new segments below the log start are dropped first."""
        if self._log.durability.generation != self._plan.generation:
            return True
        segments = self._log.segments
        while self._pairs and not any(old in segments for old in self._pairs[0][1]):
            made, _ = self._pairs[0]
            if self.state is SwapState.NAMED or made.base_offset >= segments[0].base_offset:
                return True
            self._pairs.pop(0)
            self._remove_cleaned(made)
        expected = [old for _, olds in self._pairs for old in olds]
        if not expected or self._log.active in expected or segments[: len(expected)] != expected:
            return True
        # A flush may be about to write such an index, to a path that the new segment will use.
        return any(old.has_unsaved_indexes for old in expected)

    def _install(self) -> Callable[[], None]:
        log = self._log
        shared = log.environment
        for made, _ in self._pairs:
            segment = Segment(
                shared.files, shared.cache, shared.index_cache, log.directory, made.base_offset, log.config
            )
            segment.init_from_compaction(made, SWAP_SUFFIX)
            self._new.append(segment)
        old = [segment for _, olds in self._pairs for segment in olds]
        gone = {segment.base_offset for segment in old} - {made.base_offset for made, _ in self._pairs}
        log.set_segments([*self._new, *log.segments[len(old) :]])
        self.state = SwapState.INSTALLED
        self.removals += [remove_segment(log, segment) for segment in old]
        self.removals += remove_snapshots(log, lambda offset: offset not in gone)
        return self._sync

    def _finalize(self) -> None:
        log = self._log
        try:
            for segment in self._new:
                if segment in log.segments:
                    segment.rename_to_final()
        except OSError as error:
            self._error = error
        log.durability.note_directory_changed()
        self.state = SwapState.RENAMED

    def _sync(self) -> None:
        self._attempt(partial(self._log.environment.files.sync_directory, self._log.directory))

    def _attempt(self, job: Callable[[], None]) -> None:
        """Run a job off the event loop. A failure is kept, and no further job is run after it."""
        if self._error is None:
            try:
                job()
            except OSError as error:
                self._error = error

    def _end(self, state: SwapState) -> None:
        self.state = state
        if self._log.swap is self:
            self._log.swap = None

    # Rollback and failure.

    def _undo_names(self) -> None:
        """Rename back to ``.cleaned`` instead of deleting: deletions in any order could leave only a later segment."""
        for made, _ in self._pairs:
            self._rename(made, SWAP_SUFFIX, CLEANED_SUFFIX)

    def _discard_job(self) -> Callable[[], None]:
        files, directory = self._log.environment.files, self._log.directory
        base_offsets = [made.base_offset for made, _ in self._pairs]
        self._pairs = []

        def remove() -> None:
            self._sync()
            self._attempt(partial(discard, files, directory, base_offsets))

        return remove

    def _fail(self) -> None:
        """Handle a failed job, or a log that went offline.

        Before files are renamed only the compaction is lost: the disk may be full. After a failed rename or sync it is
        unknown which names are durable, so the whole directory goes offline.
        """
        error, self._error = self._error, None
        log = self._log
        if log.offline_reason is not None:
            self._pairs = []
        elif self.state in (SwapState.SECURED, SwapState.ABANDONED):
            logger.warning("discarding the compacted segments of %s: %s", log.topic_partition, error)
        else:
            log.directory_failed(f"compacted segments of {log.topic_partition} cannot be put in place: {error}")
            self._pairs = []
        if self.state is not SwapState.ABANDONED:
            self._end(SwapState.ABANDONED)

    def _rename(self, made: NewSegment, old_suffix: str, new_suffix: str) -> None:
        files, directory = self._log.environment.files, self._log.directory
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            path = f"{directory}/{file_name(made.base_offset, suffix)}"
            try:
                files.rename(path + old_suffix, path + new_suffix)
            except FileNotFoundError:
                # A transaction index exists only if there are aborted transactions.
                continue

    def _remove_cleaned(self, made: NewSegment) -> None:
        discard(self._log.environment.files, self._log.directory, [made.base_offset])
