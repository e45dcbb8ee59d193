"""Scrubbing: verify durable data in the background, to find corruption before a reader does.

A pass goes over everything below the recovery point in steps of a few mebibytes: `Scrubber.next_job` leases a file,
the job's ``run`` verifies checksums on a thread, `Scrubber.finish` applies its result. Corruption takes that one log
offline, with the file and position in the message; nothing is repaired or removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.kernel.environment import File
from millbeck.kernel.errors import CorruptMessage
from millbeck.kernel.units import MIB
from millbeck.records.batch import HEADER_SIZE, read_header, verify
from millbeck.storage.segment import CorruptSegment, Segment

if TYPE_CHECKING:
    from millbeck.storage.log import Log

STEP_BYTES = 4 * MIB


class ScrubJob:
    """Verification of batches of one leased file; ``next_position`` and ``finding`` are the result."""

    __slots__ = (
        "_end",
        "_file",
        "_position",
        "_upto_offset",
        "finding",
        "handle",
        "next_position",
        "segment",
        "truncation_count",
    )

    def __init__(self, segment: Segment, position: int, upto_offset: int) -> None:
        self.segment = segment
        self.truncation_count = segment.truncation_count
        self.handle = segment.handle
        """A truncation may give the segment another handle, so the lease is kept with the one it was taken from."""
        self._file: File = self.handle.lease()
        self._position = position
        self._end = segment.size
        self._upto_offset = upto_offset
        self.next_position = position
        self.finding: CorruptSegment | None = None

    def run(self) -> None:
        """Verify; called off the event loop. Raises OSError when the file cannot be read."""
        position = self._position
        while position < self._end and position - self._position < STEP_BYTES:
            try:
                header = read_header(self._file.read(HEADER_SIZE, position))
                if header.base_offset >= self._upto_offset:
                    position = self._end
                    break
                if position + header.size_bytes > self._end:
                    raise CorruptMessage(f"a batch of {header.size_bytes} bytes extends beyond the end of the log")
                verify(self._file.read(header.size_bytes, position))
            except CorruptMessage as error:
                self.finding = CorruptSegment(self._file.path, position, str(error))
                return
            position += header.size_bytes
        self.next_position = position


class Scrubber:
    """One pass over one log; create a new one for the next pass."""

    __slots__ = ("_base_offset", "_job", "_log", "_position", "_segment", "_truncation_count", "is_done")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._base_offset = log.segments[0].base_offset
        self._segment: Segment | None = None
        self._position = 0
        self._truncation_count = 0
        self._job: ScrubJob | None = None
        self.is_done = False

    def next_job(self) -> ScrubJob | None:
        """The next job, or None when the pass is over. Raises OSError when the file cannot be opened."""
        assert self._job is None, "one job at a time"
        log = self._log
        for segment in log.segments:
            if segment.base_offset < self._base_offset:
                continue
            # After compaction or truncation the batches are at other positions: start at the beginning.
            is_unchanged = segment is self._segment and segment.truncation_count == self._truncation_count
            position = self._position if is_unchanged else 0
            if segment.base_offset >= log.recovery_point or log.is_offline:
                break
            if position < segment.size:
                self._base_offset, self._position, self._segment = segment.base_offset, position, segment
                self._truncation_count = segment.truncation_count
                self._job = ScrubJob(segment, position, log.recovery_point)
                return self._job
        self.is_done = True
        return None

    def finish(self, job: ScrubJob) -> None:
        """Apply a job's result on the event loop. Findings in data that was truncated or deleted meanwhile are
        ignored.
        """
        assert job is self._job
        self._job = None
        job.handle.release()
        log = self._log
        is_current = job.segment in log.segments and job.segment.truncation_count == job.truncation_count
        if job.finding is not None and is_current:
            log.mark_corrupt(job.finding)
        self._position = job.next_position
