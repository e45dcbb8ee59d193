"""How long to rest before a connection is read again, so that the requests of a stream come several at a time.

A client that sends without waiting for replies, and is about as fast as the broker, meets it awake each time: every
request is read, written to the log and answered alone, and costs up to twice what it costs in company. A rest of a
fraction of a millisecond lets a few of them gather. But a client that waits for replies only loses by it, and from here
the two look alike: until there are rests. Then whoever waits has sent all that it may before each read, and sends more
only when it has its replies; so nothing is there yet when they leave. Of a stream, the next request often is.

So rests are tried out where they could be of use, for a few reads, and kept up as long as enough of them find
something waiting. Where they do not, the next trial comes later, and later each time that it fails. Short reads are
single requests that somebody waits for, and long ones have company already: neither is tried. The first read after a
pause never waits. See docs/adr/0013-rests-between-reads.md.
"""

from __future__ import annotations

from typing import Final

REST_S: Final = 0.000_3
"""From the beginning of one read to that of the next, at least. The system's timers make it some 50 µs longer."""
AT_ONCE_S: Final = 0.000_01
"""What is there so soon after the replies was sent before they came: nobody answers in that time."""
WINDOW_S: Final = 0.008
READ_BYTES_MIN: Final = 4 << 10
READ_BYTES_MAX: Final = 48 << 10
"""Between which a stream's mean read lies where a rest can be of use."""
BYTES_PER_SECOND_MIN: Final = 32e6
BYTES_PER_SECOND_MAX: Final = 200e6
"""Between which its rate lies: of a faster one, what comes during a rest would fill the socket's buffer."""
TRIAL_READS: Final = 16
WAITING_MIN: Final = 9
"""Of so many reads, how many must find something waiting."""
WINDOWS_WITHOUT_MAX: Final = 4096


class ReadModeration:
    """The rests of one connection. ``now`` is always the caller's, in seconds of a clock that does not go back."""

    __slots__ = (
        "_began_at",
        "_bytes",
        "_handled_at",
        "_is_resting",
        "_read_at",
        "_read_count",
        "_waiting_count",
        "_windows_left",
        "_windows_without",
    )

    def __init__(self) -> None:
        self._began_at = 0.0
        self._read_at = 0.0
        self._handled_at = 0.0
        self._bytes = 0
        self._read_count = 0
        self._waiting_count = 0
        self._is_resting = False
        self._windows_left = 0  # until rests may be tried
        self._windows_without = 0  # to come after the next trial that fails

    def note_readable(self, now: float) -> float:
        """There is something to read: how long to wait before that is done; not at all when it is 0 or less."""
        if not self._is_resting:
            return 0.0
        if now - self._handled_at < AT_ONCE_S:
            self._waiting_count += 1
        return self._read_at + REST_S - now

    def note_read(self, now: float, size_bytes: int) -> None:
        """A read began at ``now`` and brought so much."""
        self._read_at = now
        self._bytes += size_bytes
        self._read_count += 1
        if self._is_resting:
            if self._read_count == TRIAL_READS:
                self._judge_rests(now)
        elif now - self._began_at >= WINDOW_S:
            self._end_window(now)

    def note_handled(self, now: float) -> None:
        """All that was there was read and is handled, and replies have left."""
        self._handled_at = now

    def note_unfinished(self) -> None:
        """There was no room for all of it: what is left has gathered already, and says nothing of its sender."""
        self._read_at = self._handled_at = 0.0

    def _judge_rests(self, now: float) -> None:
        bytes_max = BYTES_PER_SECOND_MAX * (now - self._began_at)
        if self._waiting_count >= WAITING_MIN and self._bytes <= bytes_max:
            self._windows_without //= 2
        else:
            self._is_resting = False
            self._windows_left = self._windows_without
            self._windows_without = min(2 * self._windows_without + 1, WINDOWS_WITHOUT_MAX)
        self._begin(now)

    def _end_window(self, now: float) -> None:
        seconds = now - self._began_at
        if self._windows_left:
            self._windows_left -= 1
        elif seconds <= 2 * WINDOW_S:  # longer, and there was a pause: what was measured says nothing
            bytes_per_second = self._bytes / seconds
            bytes_per_read = self._bytes / self._read_count
            self._is_resting = (
                BYTES_PER_SECOND_MIN <= bytes_per_second <= BYTES_PER_SECOND_MAX
                and READ_BYTES_MIN <= bytes_per_read <= READ_BYTES_MAX
            )
        self._begin(now)

    def _begin(self, now: float) -> None:
        self._began_at = now
        self._bytes = self._read_count = self._waiting_count = 0
