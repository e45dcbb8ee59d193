"""The worker process of `workers`: runs one job after another and ends with its parent process.

Frames are read from standard input and written to standard output: four bytes of length, then a pickled tuple whose
first item is the frame's type. Both ends are processes of this program; nothing from the network is ever unpickled. A
thread reads, so that a message or the end of the input is noticed during a job: the end of the input means that the
parent has ended, and then this process exits at once, whatever it is doing.

The job's prints go to standard error, and the process runs with a lower priority (`NICENESS`).
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO, Final

from millbeck.host.files import HostFiles
from millbeck.host.linux import IS_LINUX, die_with_parent
from millbeck.kernel.environment import Files, WorkCancelled

NICENESS: Final = 10
FRAME_BYTES_MAX: Final = 64 << 20

READY: Final = "ready"  # the worker's first frame
DO: Final = "do"  # number, pickled job and argument, which the running thread unpickles
TELL: Final = "tell"  # number, word
STOP: Final = "stop"  # number
DONE: Final = "done"  # number, result
FAILED: Final = "failed"  # number, exception
REPORT: Final = "report"  # number, progress

_LENGTH: Final = struct.Struct(">I")


class BadFrame(Exception):
    """An invalid frame from the other end."""


def encode_frame(*items: object) -> bytes:
    content = pickle.dumps(items, protocol=pickle.HIGHEST_PROTOCOL)
    if len(content) > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {len(content)} bytes is too long")
    return _LENGTH.pack(len(content)) + content


def read_frame(stream: BinaryIO) -> tuple[Any, ...] | None:
    """The next frame; None at the end of the stream, also within a frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack(head)
    if size > FRAME_BYTES_MAX:
        raise BadFrame(f"a frame of {size} bytes is too long")
    content = stream.read(size)
    if len(content) < size:
        return None
    frame = pickle.loads(content)
    if not isinstance(frame, tuple) or not frame:
        raise BadFrame("a frame is not a tuple")
    return frame


class LocalWorkerContext:
    """The context of a job that runs in this process or on a thread of the event loop's process."""

    def __init__(self, files: Files, report: Callable[[object], None]) -> None:
        self.files = files
        self._report = report
        self._stopped = threading.Event()
        self._word: object = None

    def monotonic(self) -> float:
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        if self._stopped.wait(seconds) if seconds > 0 else self._stopped.is_set():
            raise WorkCancelled

    def report(self, progress: object) -> None:
        if self._stopped.is_set():
            raise WorkCancelled
        self._report(progress)

    def word(self) -> object:
        return self._word

    def tell(self, word: object) -> None:
        self._word = word

    def stop(self) -> None:
        self._stopped.set()


class WorkerChannel:
    """Receives jobs and sends results; one job runs at a time."""

    def __init__(self, source: BinaryIO, sink: BinaryIO, files: Files) -> None:
        self._source = source
        self._sink = sink
        self._files = files
        self._jobs: SimpleQueue[tuple[int, bytes, LocalWorkerContext] | None] = SimpleQueue()
        self._contexts: dict[int, LocalWorkerContext] = {}

    def listen(self, at_end: Callable[[], None]) -> None:
        """Read frames until the end of the input, then call ``at_end``."""
        while (frame := self._next_frame()) is not None:
            kind, number = frame[0], frame[1]
            if kind == DO:
                context = self._contexts[number] = LocalWorkerContext(self._files, partial(self._send, REPORT, number))
                self._jobs.put((number, frame[2], context))
            elif number in self._contexts:
                if kind == TELL:
                    self._contexts[number].tell(frame[2])
                else:
                    self._contexts[number].stop()
        at_end()
        self._jobs.put(None)

    def _next_frame(self) -> tuple[Any, ...] | None:
        try:
            return read_frame(self._source)
        except OSError:
            return None

    def work(self) -> None:
        """Run jobs until the end of the input."""
        self._send(READY)
        while (job := self._jobs.get()) is not None:
            number, order, context = job
            try:
                function, argument = pickle.loads(order)
                frame = encode_frame(DONE, number, function(context, argument))
            except Exception as error:
                frame = encode_failure(number, error)
            del self._contexts[number]
            self._write(frame)

    def _send(self, *items: object) -> None:
        self._write(encode_frame(*items))

    def _write(self, frame: bytes) -> None:
        self._sink.write(frame)
        self._sink.flush()


def encode_failure(number: int, error: Exception) -> bytes:
    """The frame with the exception if it can be pickled and unpickled, else with its text."""
    error.__traceback__ = None
    try:
        frame = encode_frame(FAILED, number, error)
        pickle.loads(frame[_LENGTH.size :])
    except Exception:
        frame = encode_frame(FAILED, number, RuntimeError(f"{type(error).__name__}: {error}"))
    return frame


def main() -> None:
    """The main function of the worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if IS_LINUX:
        die_with_parent(signal.SIGKILL)
    os.nice(NICENESS)
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    channel = WorkerChannel(os.fdopen(os.dup(0), "rb"), sink, HostFiles(is_linux=IS_LINUX))
    threading.Thread(target=channel.listen, args=(lambda: os._exit(0),), daemon=True).start()
    try:
        channel.work()
    except BrokenPipeError:
        os._exit(0)
