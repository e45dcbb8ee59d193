"""The send queue of one connection: bytes and file slices, in order.

A slice is sent in one of two ways. A short one is read when it reaches the front and is sent with the bytes around it;
a long one stays at the front and is sent from its file piece by piece. Its ``release`` is called exactly once: when
its last byte was read or sent, or when the queue is cleared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from millbeck.kernel.environment import Bytes, FileSlice, Part

_BUFFERS_MAX = 512  # below IOV_MAX everywhere


class FileSliceTruncated(Exception):
    """A file has fewer bytes than its slice, whose size was already sent in the response."""


class SendQueue:
    __slots__ = ("_first_slice_done", "_parts", "size_bytes")

    def __init__(self) -> None:
        self.size_bytes = 0
        self._parts: deque[Part] = deque()
        self._first_slice_done = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    def extend(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, FileSlice):
                size = part.size
                if size == 0:
                    part.release()
            else:
                size = len(part)
            if size:
                self._parts.append(part)
                self.size_bytes += size

    def take(self, size_max: int, *, copied_slice_bytes_max: int) -> list[Bytes]:
        """Remove about ``size_max`` bytes at most from the front, reading file slices.

        Stops at a slice with more than ``copied_slice_bytes_max`` left; when that is at the front nothing is taken,
        and the caller sends it from its file.
        """
        taken: list[Bytes] = []
        size = 0
        while self._parts and size < size_max and len(taken) < _BUFFERS_MAX:
            part = self._parts[0]
            if isinstance(part, FileSlice):
                left = part.size - self._first_slice_done
                if left > copied_slice_bytes_max:
                    break
                buffer: Bytes = self._read_first_slice(min(left, size_max))
            else:
                buffer = part
                self._parts.popleft()
                self.size_bytes -= len(buffer)
            taken.append(buffer)
            size += len(buffer)
        return taken

    def begins_with_slice(self) -> bool:
        return bool(self._parts) and isinstance(self._parts[0], FileSlice)

    def _read_first_slice(self, size: int) -> bytes:
        part = self._parts[0]
        assert isinstance(part, FileSlice)
        buffer = part.file.read(size, part.position + self._first_slice_done)
        if len(buffer) != size:
            raise FileSliceTruncated
        self.advance_first_slice(size)
        return buffer

    def put_back(self, buffers: Sequence[Bytes], sent: int) -> None:
        """Return the result of `take` to the queue, except its first ``sent`` bytes."""
        rest: list[Bytes] = []
        for buffer in buffers:
            size = len(buffer)
            if sent >= size:
                sent -= size
                continue
            rest.append(memoryview(buffer)[sent:] if sent else buffer)
            self.size_bytes += size - sent
            sent = 0
        # The next part may be a partly read slice; its progress applies again once these bytes were sent.
        self._parts.extendleft(reversed(rest))

    def first_slice(self) -> tuple[FileSlice, int, int]:
        """The slice at the front, the file position of its next byte, and its remaining size."""
        part = self._parts[0]
        assert isinstance(part, FileSlice)
        return part, part.position + self._first_slice_done, part.size - self._first_slice_done

    def advance_first_slice(self, count: int) -> None:
        part = self._parts[0]
        assert isinstance(part, FileSlice)
        self._first_slice_done += count
        self.size_bytes -= count
        if self._first_slice_done == part.size:
            self._parts.popleft()
            self._first_slice_done = 0
            part.release()

    def clear(self) -> None:
        while self._parts:
            part = self._parts.popleft()
            if isinstance(part, FileSlice):
                part.release()
        self.size_bytes = 0
        self._first_slice_done = 0


def release_slices(parts: Sequence[Part]) -> None:
    """Release the slices of parts that will not be sent."""
    for part in parts:
        if isinstance(part, FileSlice):
            part.release()
