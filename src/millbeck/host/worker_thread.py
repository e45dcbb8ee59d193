"""The parent's side of a worker process: a handle per job, and the thread that communicates with the process.

The thread starts the process, sends jobs, waits for results, and notices when the process dies. The worker ends when
its input does (`worker_process`), which also happens when this process is killed. Where no process can be started, the
thread runs the job itself.
"""

from __future__ import annotations

import json
import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from millbeck.host import worker_process
from millbeck.host.worker_process import LocalWorkerContext, encode_frame, read_frame
from millbeck.kernel.environment import Files, WorkerDied

if TYPE_CHECKING:
    import asyncio

END_SECONDS_MAX: Final = 5.0

log = logging.getLogger(__name__)


class HostWorkerHandle:
    """The handle of one job. Messages are sent at once, or right after the job when it is not sent yet."""

    def __init__(
        self, number: int, order: bytes, on_report: Callable[[object], None], loop: asyncio.AbstractEventLoop
    ) -> None:
        self.number = number
        self.order = order
        self.result: asyncio.Future[Any] = loop.create_future()
        self.loop = loop
        self.on_report = on_report
        self.result.add_done_callback(self._stop_if_given_up)
        self._lock = threading.Lock()
        self._waiting: list[tuple[object, ...]] = []
        self._take: Callable[[tuple[object, ...]], None] | None = None

    def tell(self, word: object) -> None:
        self._pass_on((worker_process.TELL, self.number, word))

    def stop(self) -> None:
        self._pass_on((worker_process.STOP, self.number))

    def _stop_if_given_up(self, result: asyncio.Future[Any]) -> None:
        if result.cancelled():
            self.stop()

    def _pass_on(self, message: tuple[object, ...]) -> None:
        with self._lock:
            if self._take is None:
                self._waiting.append(message)
            else:
                self._take(message)

    def connect(self, take: Callable[[tuple[object, ...]], None]) -> None:
        """The job was sent to the worker: ``take`` sends further messages."""
        with self._lock:
            for message in self._waiting:
                take(message)
            self._waiting.clear()
            self._take = take

    def disconnect(self) -> None:
        with self._lock:
            self._take = lambda message: None

    def post(self, call: Callable[..., None], *arguments: object) -> None:
        """Schedule a call on the event loop; ignored when the event loop is closed."""
        try:
            self.loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            pass


class WorkerThread:
    """One worker process and the thread that communicates with it."""

    def __init__(self, files: Files, command: list[str] | None, finished: Callable[..., None]) -> None:
        self.idle_timer: asyncio.TimerHandle | None = None
        self._files = files
        self._command = command
        self._finished = finished
        self._process: subprocess.Popen[bytes] | None = None
        self._queue: SimpleQueue[HostWorkerHandle | None] = SimpleQueue()
        threading.Thread(target=self._serve, name="millbeck-worker", daemon=True).start()

    def give(self, handle: HostWorkerHandle) -> None:
        self._queue.put(handle)

    def end(self) -> None:
        self._queue.put(None)

    def _serve(self) -> None:
        while (handle := self._queue.get()) is not None:
            try:
                result, failure = self._do(handle), None
            except JobRaised as answer:
                result, failure = None, answer.error
            except Exception as error:
                result, failure = None, error
            handle.disconnect()
            handle.post(self._finished, self, handle, result, failure)
            del handle, result, failure
        self._end_process()

    def _do(self, handle: HostWorkerHandle) -> Any:
        if self._process is None or self._process.poll() is not None:
            self._process = self._start_process()
        if self._process is None:
            return self._do_here(handle)
        try:
            return self._do_there(handle, self._process)
        except (OSError, EOFError, pickle.UnpicklingError, worker_process.BadFrame) as error:
            code = self._end_process()
            raise WorkerDied(f"the worker process ended with code {code}") from error

    def _start_process(self) -> subprocess.Popen[bytes] | None:
        if self._command is None:
            return None
        try:
            self._process = process = subprocess.Popen(
                [*self._command, json.dumps(sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                process_group=0,
            )
            if read_frame(cast(BinaryIO, process.stdout)) != (worker_process.READY,):
                raise OSError(f"the worker process ended with code {self._end_process()}")
            return process
        except (OSError, worker_process.BadFrame) as error:
            log.warning("could not start a worker process, running its jobs on a thread: %s", error)
            self._end_process()
            self._command = None
            return None

    def _do_there(self, handle: HostWorkerHandle, process: subprocess.Popen[bytes]) -> Any:
        source, sink = cast(BinaryIO, process.stdout), cast(BinaryIO, process.stdin)

        def take(message: tuple[object, ...]) -> None:
            try:
                sink.write(encode_frame(*message))
                sink.flush()
            except (OSError, ValueError):
                pass  # the process died, and the pipe may be closed: reading its result fails

        sink.write(encode_frame(worker_process.DO, handle.number, handle.order))
        sink.flush()
        handle.connect(take)
        while (frame := read_frame(source)) is not None:
            kind, number, content = frame
            if number != handle.number:
                continue
            if kind == worker_process.REPORT:
                handle.post(handle.on_report, content)
            elif kind == worker_process.DONE:
                return content
            else:
                raise JobRaised(content)
        raise EOFError

    def _do_here(self, handle: HostWorkerHandle) -> Any:
        context = LocalWorkerContext(self._files, lambda progress: handle.post(handle.on_report, progress))

        def take(message: tuple[object, ...]) -> None:
            if message[0] == worker_process.STOP:
                context.stop()
            else:
                context.tell(message[2])

        handle.connect(take)
        job, argument = pickle.loads(handle.order)
        return job(context, argument)

    def _end_process(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        for stream in (process.stdin, process.stdout):
            try:
                cast(BinaryIO, stream).close()
            except OSError:
                pass
        try:
            return process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


class JobRaised(Exception):
    """Wraps an exception that the job raised."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error
