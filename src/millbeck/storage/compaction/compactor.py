"""The compactor: reads the source segments and writes new segments, and touches nothing else.

`compact` is a pure function of its job and the files: it reads the sources, writes ``.cleaned`` files beside them and
syncs all it has written, including the directory. It runs wherever there are `Files`: in a worker process, on a
thread, inline in the simulator. The ``.cleaned`` files have no effect until `millbeck.storage.swap` puts them in
place; until then the next start, or the next compaction, removes them.

There are two passes: `mapping` over the dirty part, and `rewriting` over everything up to the end of the offset map.
Every round starts at the beginning of the log, since any key may have older records there.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.kernel.environment import Files, OpenMode
from millbeck.storage.compaction import grouping, mapping
from millbeck.storage.compaction.job import (
    CompactionJob,
    CompactionProgress,
    CompactionResult,
    CompactionStats,
    NewSegment,
    OnProgress,
    SourceFile,
    SourceRemoved,
    SourceSegment,
    Throttle,
)
from millbeck.storage.compaction.output import CLEANED_SUFFIX, Output
from millbeck.storage.compaction.rewriting import Rewriter
from millbeck.storage.compaction.source_reader import SourceReader
from millbeck.storage.segment import INDEX_SUFFIX, INDEX_SUFFIXES, LOG_SUFFIX, TIME_INDEX_SUFFIX, file_name


def _no_throttle(size_bytes: int) -> None:
    return None


def compact(
    job: CompactionJob,
    files: Files,
    throttle: Throttle = _no_throttle,
    on_progress: OnProgress | None = None,
    open_source: Callable[[SourceSegment], SourceFile] | None = None,
) -> CompactionResult:
    """Run one round. ``open_source`` opens the plan's leased files if the job runs in the same process; otherwise files
    are opened by name.

    Raises `UncleanableLog`, `SourceRemoved`, `CompactionCancelled` or OSError; it then leaves no ``.cleaned`` file.
    """
    try:
        return _Compaction(job, files, throttle, on_progress, open_source).run()
    except BaseException:
        _discard_quietly(files, job)
        raise


def discard(files: Files, directory: str, base_offsets: list[int]) -> None:
    """Remove the ``.cleaned`` files of segments that are no longer needed; missing files are no error."""
    for base_offset in base_offsets:
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            try:
                files.unlink(f"{directory}/{file_name(base_offset, suffix)}{CLEANED_SUFFIX}")
            except FileNotFoundError:
                pass


def _discard_quietly(files: Files, job: CompactionJob) -> None:
    try:
        discard(files, job.directory, [source.base_offset for source in job.sources])
    except OSError:
        # The original exception is the one to report; the next start removes the leftover files.
        pass


class _Compaction:
    def __init__(
        self,
        job: CompactionJob,
        files: Files,
        throttle: Throttle,
        on_progress: OnProgress | None,
        open_source: Callable[[SourceSegment], SourceFile] | None,
    ) -> None:
        self._job = job
        self._files = files
        self._wait = throttle
        self._on_progress = on_progress
        self._open = open_source or self._open_by_name
        self._statistics = CompactionStats()
        dirty = sum(source.size for source in job.sources if source.next_base_offset > job.first_dirty_offset)
        self._bytes_total = dirty + sum(source.size for source in job.sources)

    def run(self) -> CompactionResult:
        job, statistics = self._job, self._statistics
        self._make_room()
        offset_map = mapping.build(job, self._open, self._throttle, statistics)
        end_offset = offset_map.latest_offset + 1
        covered = [source for source in job.sources if source.base_offset < end_offset]
        rewriter = Rewriter(job, offset_map, statistics)
        groups = grouping.group(
            covered, size_max=job.segment_size_max, index_size_max=job.index_size_max, index_sizes=self._index_sizes
        )
        segments = [self._rewrite(rewriter, sources) for sources in groups]
        self._files.sync_directory(job.directory)
        return CompactionResult(segments=tuple(segments), cleaned_offset=end_offset, statistics=statistics)

    def _make_room(self) -> None:
        """Remove, durably, the leftovers of an interrupted compaction before a new one begins.

        At startup a ``.cleaned`` file means that swaps of segments from its offset on must not be completed. So files
        of an old compaction must not remain beside those of a new one.
        """
        files, directory = self._files, self._job.directory
        for name in files.names(directory):
            if name.endswith(CLEANED_SUFFIX):
                files.unlink(f"{directory}/{name}")
        files.sync_directory(directory)

    def _rewrite(self, rewriter: Rewriter, sources: list[SourceSegment]) -> NewSegment:
        job = self._job
        output = Output(
            self._files,
            job.directory,
            sources[0].base_offset,
            index_size_max=job.index_size_max,
            index_interval_bytes=job.index_interval_bytes,
            throttle=self._throttle,
        )
        last_with_batches = max((index for index, source in enumerate(sources) if source.size), default=-1)
        try:
            for index, source in enumerate(sources):
                file = self._open(source)
                try:
                    reader = SourceReader(source, file, job.read_bytes, self._throttle)
                    rewriter.rewrite(reader, output, ends_segment=index == last_with_batches)
                finally:
                    file.close()
            made = output.finish(len(sources))
        finally:
            output.close()
        self._statistics.bytes_written += made.size
        return made

    def _index_sizes(self, source: SourceSegment) -> tuple[int, int]:
        stem = source.path.removesuffix(LOG_SUFFIX)
        try:
            return self._files.size(stem + INDEX_SUFFIX), self._files.size(stem + TIME_INDEX_SUFFIX)
        except FileNotFoundError:
            # The size of its indexes is unknown: the source gets a separate segment.
            return self._job.index_size_max, self._job.index_size_max

    def _open_by_name(self, source: SourceSegment) -> SourceFile:
        try:
            return self._files.open(source.path, OpenMode.READ)
        except FileNotFoundError as error:
            raise SourceRemoved(f"{source.path} no longer exists") from error

    def _throttle(self, size_bytes: int) -> None:
        """Called for every read and write, so that progress is also reported in the middle of a large segment."""
        self._wait(size_bytes)
        if self._on_progress is not None:
            done = self._statistics.bytes_mapped + self._statistics.bytes_read
            self._on_progress(CompactionProgress(bytes_done=done, bytes_total=self._bytes_total))
