"""Read moderation: delays reads of a connection that streams requests, so that several requests arrive per read.

A client that sends without waiting for responses, about as fast as the broker, finds the broker idle each time: every
request is read, written to the log and answered alone, which costs up to twice as much as handling several together. A
delay of a fraction of a millisecond lets a few of them arrive. But a client that waits for responses is only slowed
down, and without delays the broker cannot distinguish the two. With a delay, a waiting client has sent everything it
may send before each read, and sends more only after it gets the responses; so nothing has arrived when the responses
are sent. A streaming client has often sent its next request by then.

So delays are tried where they could help, for a few reads, and kept as long as enough reads find data waiting.
Otherwise the next trial is delayed, longer after each failure. Short reads are single requests of a waiting client, and
long ones are grouped already: neither is tried. The first read after an idle time is never delayed. See
docs/adr/0013-rests-between-reads.md.
"""

from __future__ import annotations

from typing import Final

REST_S: Final = 0.000_3
"""Minimum time between the beginnings of two reads. The system's timers make it some 50 µs longer."""
AT_ONCE_S: Final = 0.000_01
"""Data that arrives within this time after the responses was sent before them, since no client reacts so fast."""
WINDOW_S: Final = 0.008
READ_BYTES_MIN: Final = 4 << 10
READ_BYTES_MAX: Final = 48 << 10
"""Range of the mean read size in which a delay can help."""
BYTES_PER_SECOND_MIN: Final = 32e6
BYTES_PER_SECOND_MAX: Final = 200e6
"""Range of the byte rate: above it, the data of one delay would fill the socket's buffer."""
TRIAL_READS: Final = 16
WAITING_MIN: Final = 9
"""The number of trial reads that must find data waiting."""
WINDOWS_WITHOUT_MAX: Final = 4096


class ReadModeration:
    """Read delays of one connection; times are seconds of the caller's monotonic clock.

    The caller records each read in the three public attributes, and the next `on_readable` evaluates it.
    """

    __slots__ = (
        "_began_at",
        "_bytes",
        "_is_resting",
        "_read_count",
        "_waiting_count",
        "_windows_left",
        "_windows_without",
        "handled_at",
        "read_at",
        "size_bytes",
    )

    def __init__(self) -> None:
        self.read_at = 0.0
        """The time at which the last read began."""
        self.size_bytes = 0
        """The size of the last read; 0 once it is counted."""
        self.handled_at = 0.0
        """The time at which all requests of the last read were handled and the responses sent; 0 if the read filled the
        buffer: then the remaining data has arrived already and shows nothing about the client."""
        self._began_at = 0.0
        self._bytes = 0
        self._read_count = 0
        self._waiting_count = 0
        self._is_resting = False
        self._windows_left = 0  # until the next trial
        self._windows_without = 0  # to wait after the next failed trial

    def on_readable(self, now: float) -> float:
        """The socket is readable; returns how long to wait before reading it (0 or less: read now)."""
        if self.size_bytes:
            self._count_read()
        if not self._is_resting:
            return 0.0
        if now - self.handled_at < AT_ONCE_S:
            self._waiting_count += 1
        return self.read_at + REST_S - now if self.handled_at else 0.0

    def _count_read(self) -> None:
        self._bytes += self.size_bytes
        self.size_bytes = 0
        self._read_count += 1
        if self._is_resting:
            if self._read_count == TRIAL_READS:
                self._judge_rests(self.read_at)
        elif self.read_at - self._began_at >= WINDOW_S:
            self._end_window(self.read_at)

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
        elif seconds <= 2 * WINDOW_S:  # if longer, the connection was idle in between: the mean rate is meaningless
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
