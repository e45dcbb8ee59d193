"""The replication stream: one connection, read on a thread of its own.

The thread gathers whole transactions and holds up to `HELD_BYTES_MAX` of them; beyond that it does not read, and the
server waits. Whatever happens it tells the server what is in the log, at least every ``status_interval_s``, so that the
server neither drops the connection nor keeps more than it has to.
"""

from __future__ import annotations

import logging
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import psycopg
from psycopg.pq.abc import PGconn

from millbeck.pipeline.connect.errors import ConnectError, RetriableError
from millbeck.pipeline.connect.postgres.assembly import TRANSACTION_BYTES_MAX, Transaction, TransactionAssembler
from millbeck.pipeline.connect.postgres.connection import one_line
from millbeck.pipeline.connect.postgres.replication_frames import Keepalive, frame_of, status_update

HELD_BYTES_MAX: Final = 64 << 20
_HELD_COUNT_MAX: Final = 200_000
_WAIT_S: Final = 0.5
_WAKE_AGAIN_S: Final = 1.0
IDLE_BYTES: Final = 16 << 20
"""So much log of other tables moves the offset on, and with it the slot."""
_FRAMES_PER_ROUND: Final = 2000
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class StreamState:
    """What the thread and the connector share, under ``lock``."""

    transactions: deque[Transaction] = field(default_factory=deque)
    held_bytes: int = 0
    received_lsn: int = 0
    """Everything that was committed before has been received."""
    confirmed_lsn: int = 0
    """Everything before is in the log."""
    is_announced: bool = False
    """Whether `wake` was called for transactions that nobody has asked for since."""
    error: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class ReplicationStream:
    """Owns a connection in COPY BOTH mode, from `start` to `close`."""

    def __init__(
        self,
        connection: PGconn,
        assembler: TransactionAssembler,
        *,
        start_lsn: int,
        wake: Callable[[], None],
        status_interval_s: float,
        wake_interval_s: float,
        release: Callable[[], None],
    ) -> None:
        """``wake`` is called when there is something new, and every ``wake_interval_s``; ``release`` on the thread, at
        its end.
        """
        self._connection = connection
        self._assembler = assembler
        self._wake = wake
        self._status_interval_s = status_interval_s
        self._wake_interval_s = wake_interval_s
        self._release = release
        self.start_lsn = start_lsn
        self._state = StreamState(received_lsn=start_lsn, confirmed_lsn=start_lsn)
        self._woken_at = 0.0
        self._wants_position = False
        self._is_closing = threading.Event()
        self._wants_status = threading.Event()
        self._thread = threading.Thread(target=self._run, name="millbeck-postgres-stream", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """End the thread and the connection. Spools are removed."""
        self._is_closing.set()
        self._thread.join(timeout=30)
        with self._state.lock:
            for transaction in self._state.transactions:
                _discard(transaction)
            self._state.transactions.clear()

    @property
    def assembler(self) -> TransactionAssembler:
        return self._assembler

    def raise_error(self) -> None:
        """Raise what has ended the thread."""
        with self._state.lock:
            error = self._state.error
        if error is not None:
            raise error

    def ask_for_position(self) -> None:
        """Ask the server how far it has sent everything; `wake` is called when it answers."""
        self._wants_position = True
        self._wants_status.set()

    def has_passed(self, lsn: int) -> bool:
        """Whether all that committed before this position has been received and confirmed."""
        with self._state.lock:
            held = self._state.transactions
            return held[0].commit_lsn >= lsn if held else self._state.received_lsn >= lsn

    def ready(self, bytes_max: int, before_lsn: int | None = None) -> list[Transaction]:
        """The oldest transactions up to so many bytes, at least one; only those that committed before ``before_lsn``.
        They stay here until they are `confirm` ed.
        """
        found: list[Transaction] = []
        size = 0
        with self._state.lock:
            self._state.is_announced = False
            for transaction in self._state.transactions:
                if before_lsn is not None and transaction.commit_lsn >= before_lsn:
                    break
                is_large = transaction.spool is not None
                if found and (is_large or size + transaction.size > bytes_max):
                    break
                found.append(transaction)
                size += transaction.size
                if is_large:
                    break
        return found

    @property
    def has_more(self) -> bool:
        with self._state.lock:
            return bool(self._state.transactions)

    @property
    def idle_lsn(self) -> int | None:
        """The position up to which there is nothing for the log; None while transactions are held."""
        with self._state.lock:
            return None if self._state.transactions else self._state.received_lsn

    @property
    def held_bytes(self) -> int:
        with self._state.lock:
            return self._state.held_bytes

    @property
    def lag_bytes(self) -> int:
        """The log that was received and is not yet written."""
        with self._state.lock:
            return max(0, self._state.received_lsn - self._state.confirmed_lsn)

    def confirm(self, lsn: int) -> None:
        """Everything before is in the log: it is given up here, and the server may remove it."""
        state = self._state
        with state.lock:
            while state.transactions and state.transactions[0].end_lsn <= lsn:
                done = state.transactions.popleft()
                state.held_bytes -= done.size
                _discard(done)
            if lsn <= state.confirmed_lsn:
                return
            state.confirmed_lsn = lsn
        self._wants_status.set()

    # on the thread

    def _run(self) -> None:
        try:
            self._read()
        except ConnectError as error:
            self._fail(error)
        except psycopg.Error as error:
            self._fail(RetriableError(f"the replication stream ended: {one_line(str(error))}"))
        except Exception as error:
            _LOG.exception("the replication stream failed")
            self._fail(RetriableError(f"the replication stream failed: {type(error).__name__}: {error}"))
        finally:
            self._assembler.close()
            self._connection.finish()
            self._release()

    def _fail(self, error: Exception) -> None:
        with self._state.lock:
            self._state.error = error
        self._wake()

    def _read(self) -> None:
        connection = self._connection
        connection.nonblocking = 1
        next_status = next_wake = time.monotonic()
        while not self._is_closing.is_set():
            now = time.monotonic()
            if now >= next_status or self._wants_status.is_set():
                self._send_status(wants_reply=True)
                next_status = now + min(self._status_interval_s, 2.0)
            if now >= next_wake:
                self._wake()
                next_wake = now + self._wake_interval_s
            if self._is_full():
                self._is_closing.wait(0.02)
            elif not self._take_frames():
                readable, _, _ = select.select([connection.socket], [], [], _WAIT_S)
                if readable:
                    connection.consume_input()
        self._send_status(wants_reply=False)

    def _is_full(self) -> bool:
        state = self._state
        with state.lock:
            held, count = state.held_bytes, len(state.transactions)
        return held >= HELD_BYTES_MAX - TRANSACTION_BYTES_MAX or count >= _HELD_COUNT_MAX

    def _take_frames(self) -> bool:
        """Take what has arrived, up to some frames; whether there may be more."""
        for _ in range(_FRAMES_PER_ROUND):
            size, data = self._connection.get_copy_data(1)
            if size == 0:
                return False
            if size < 0:
                self._ended()
            self._frame(bytes(data))
        return True

    def _ended(self) -> None:
        result = self._connection.get_result()
        text = "" if result is None else result.get_error_message()
        raise RetriableError(f"the replication stream ended: {one_line(text) or 'the server closed it'}")

    def _frame(self, data: bytes) -> None:
        frame = frame_of(data)
        state = self._state
        if isinstance(frame, Keepalive):
            if frame.wants_reply:
                self._wants_status.set()
            if not self._assembler.is_inside and frame.wal_end > state.received_lsn:
                with state.lock:
                    state.received_lsn = frame.wal_end
                    is_far = not state.transactions and frame.wal_end - state.confirmed_lsn >= IDLE_BYTES
                if self._wants_position:
                    self._wants_position = False
                    self._wake()
                if is_far and time.monotonic() - self._woken_at >= _WAKE_AGAIN_S:
                    self._woken_at = time.monotonic()
                    self._wake()
            return
        made = self._assembler.feed(frame.wal_start, frame.message)
        if made is None:
            return
        with state.lock:
            state.transactions.append(made)
            state.held_bytes += made.size
            state.received_lsn = max(state.received_lsn, made.end_lsn)
            is_news = not state.is_announced
            state.is_announced = True
        if is_news:
            self._wake()

    def _send_status(self, *, wants_reply: bool) -> None:
        self._wants_status.clear()
        state = self._state
        with state.lock:
            written, flushed = max(state.received_lsn, state.confirmed_lsn), state.confirmed_lsn
        update = status_update(written=written, flushed=flushed, now_us=time.time_ns() // 1000, wants_reply=wants_reply)
        self._connection.put_copy_data(update)
        self._connection.flush()


def _discard(transaction: Transaction) -> None:
    if transaction.spool is not None:
        transaction.spool.discard()
