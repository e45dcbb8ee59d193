"""The environment: protocols for clocks, randomness, files, network, threads and workers.

``host`` implements them on the real machine and ``simulation`` in virtual time from one seed. Every other package uses
the machine only through an `Environment`, so the same broker runs on both. The event loop is asyncio's in both (the
simulator subclasses it), so packages of layer 3 and above may use asyncio directly.

Contract of every implementation

- Calls of `File` and `Files` are synchronous and may block. Code on the event loop makes only calls that are as fast
  as the page cache and runs the others (``sync``, large unlinks and truncates) on `Threads`.
- Written data is durable only after ``sync`` of the file; a create, rename or unlink only after ``sync_directory`` of
  its parent. The simulated disk loses everything else in a crash.
- Failures are ``OSError`` with ``errno`` set. Callers never retry a failed ``sync``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple

from millbeck.kernel.file_slice import FileSlice as FileSlice
from millbeck.kernel.kerberos import Kerberos
from millbeck.kernel.tls import TlsContext, TlsSettings, TlsSource
from millbeck.kernel.units import INT_MAX

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Given = TypeVar("Given")
Gain = TypeVar("Gain")
Bytes = bytes | bytearray | memoryview


class Clock(Protocol):
    """The clocks. Deadlines use the monotonic one; only timestamps stored in records use the wall clock."""

    def monotonic(self) -> float:
        """Seconds that never go back; equal to the running event loop's ``time()``."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970; on the real machine this needs no Python call, for the data path."""

    def busy_seconds(self) -> float:
        """Time that the calling thread has run or waited for a processor; it was idle for the rest of the elapsed
        time.
        """


class Randomness(Protocol):
    def below(self, bound: int) -> int:
        """A uniform integer in ``[0, bound)``."""

    def uuid(self) -> bytes:
        """A random version 4 UUID as 16 bytes whose text form (URL-safe base64) does not begin with a dash."""


class OpenMode(Enum):
    READ = "read"  # the file must exist
    WRITE = "write"  # read and write; created when missing
    WRITE_PRIVATE = "write private"  # as WRITE; a file that is created can be read by its owner only


class File(Protocol):
    """An open file, read and written by position, without a cursor. After ``close`` every other call raises EBADF."""

    path: str

    @property
    def reads_nowait(self) -> bool:
        """False where the kernel cannot tell whether a read would block: `read_nowait` then always returns None, and
        the caller uses a thread at once instead of retrying.
        """

    def read(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes at ``position``; shorter only at the end of the file."""

    def read_counted(self, size: int, position: int) -> tuple[bytes, int]:
        """Like `read`, plus the number of bytes that it read from the disk, including readahead; all bytes where the
        kernel does not count them.
        """

    def read_nowait(self, size: int, position: int) -> Bytes | None:
        """Like `read`, but None when it would have to read from the disk (readahead has been started)."""

    def write(self, buffers: Sequence[Bytes], position: int) -> None:
        """Write all buffers consecutively at ``position``, or raise; the file may then have a part of them."""

    def allocate(self, size: int) -> None:
        """Reserve ``size`` bytes (``preallocate``); a shorter file is extended to ``size``, a longer one is
        unchanged.
        """

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Make data and size durable (fdatasync)."""

    def start_writeback(self, position: int, size: int) -> None:
        """Ask the kernel to start writeback of a range; a hint that never raises."""

    def descriptor(self) -> int | None:
        """The file descriptor for sendfile, or None in the simulator."""

    def close(self) -> None: ...


class FileLock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    def open(self, path: str, mode: OpenMode) -> File: ...

    def names(self, directory: str) -> list[str]:
        """The sorted names of a directory's entries."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; no error when it exists. Durable after ``sync_directory`` of the
        parents.
        """

    def rename(self, old: str, new: str) -> None:
        """Atomically rename ``old`` to ``new``, which is replaced."""

    def unlink(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything below it; it must exist."""

    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> FileLock:
        """Take the advisory lock of the lock file at ``path`` (created when missing), or raise ``BlockingIOError``
        when it is held by another holder, even in this process. A process that dies releases it.
        """

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int:
        """Size of the volume that contains ``path``."""

    def open_files_limit(self) -> int:
        """The maximum number of open files and sockets of this process."""


class Threads(Protocol):
    """Runs jobs off the event loop. A job is a pure function of immutable arguments or of one leased file."""

    def run(self, job: Callable[[*Ts], T], *arguments: *Ts) -> Awaitable[T]:
        """Start the job or queue it; ``BlockingIOError`` when the bounded queue is full."""


class WorkCancelled(Exception):
    """The job was cancelled by its caller."""


class WorkerDied(Exception):
    """The worker process ended before the job was done; its output files may be incomplete."""


class WorkerContext(Protocol):
    """The context that a job of `Workers` gets, wherever it runs."""

    @property
    def files(self) -> Files: ...

    def monotonic(self) -> float: ...

    def pause(self, seconds: float) -> None:
        """Sleep (0 only checks for cancellation). Raises `WorkCancelled` when the job was cancelled."""

    def report(self, progress: object) -> None:
        """Send a progress report to the event loop. Raises `WorkCancelled` when the job was cancelled."""

    def word(self) -> object:
        """The last message of the event loop (see `WorkerHandle.tell`), or None."""


class WorkerHandle(Protocol[Gain]):
    """The handle of a running job, for use on the event loop."""

    @property
    def result(self) -> asyncio.Future[Gain]:
        """The result or exception of the job; `WorkCancelled` after `stop`, `WorkerDied` when its process died.
        Cancelling the future stops the job.
        """

    def tell(self, word: object) -> None:
        """Send a message that the job may read at any time. Later messages replace earlier ones."""

    def stop(self) -> None:
        """Ask the job to stop. It may finish before it notices."""


class Workers(Protocol):
    """Runs jobs that use a processor for seconds or hours, in other processes instead of threads of the event loop's
    process.

    A job is a function of a module (not a closure) with one argument. Job, argument, result and messages are sent
    between processes, so they must be picklable values.
    """

    def start(
        self, job: Callable[[WorkerContext, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> WorkerHandle[Gain]:
        """Start a job; ``on_report`` is called on the event loop with its progress reports, in order."""

    def close(self) -> None:
        """End the idle workers; later jobs start new ones."""


Part = Bytes | FileSlice


class ConnectionStream(Protocol):
    """The stream of one connection's socket: everything is sent in order, without blocking, and received through it.

    A file slice that turns out shorter than announced aborts the connection, since its header was sent already.
    """

    @property
    def queued_bytes(self) -> int:
        """Bytes passed to `send` that the kernel has not accepted yet."""

    def send(self, parts: Sequence[Part]) -> None:
        """Send parts; what the kernel does not accept at once is queued. Never raises: a failure aborts the
        connection. Buffers must not change afterwards. On a closed or closing stream the parts are dropped and slices
        released.
        """

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None:
        """Start reading, instead of the transport where that is cheaper; called from ``connection_made`` with the
        methods of the buffered protocol.
        """

    def pause_reading(self) -> None:
        """Stop reading until `resume_reading`."""

    def resume_reading(self) -> None:
        """Continue reading after `pause_reading`."""

    def receive(self, buffer: memoryview) -> int:
        """Read available bytes into ``buffer`` without waiting; 0 when there are none, or when only the transport can
        read them. ``buffer_updated`` is not called for them.
        """

    def expect_long_requests(self) -> None:
        """Announce requests much larger than the receive buffer; may be called repeatedly."""

    def resume_writing(self) -> None:
        """Called by the protocol's own ``resume_writing`` (the stream sets the transport's write buffer limits)."""

    def on_drained(self, callback: Callable[[], None]) -> None:
        """Set the callback for each time the queue becomes empty; it is never called from ``send``."""

    def close_when_drained(self) -> None:
        """Close the transport once everything queued is sent; later sends are dropped."""

    def closed(self) -> None:
        """The connection is closed (called from ``connection_lost``): release all queued slices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketBuffers:
    """The socket buffer sizes of a connection; -1 means the system's default."""

    send_bytes: int = -1
    receive_bytes: int = -1
    growth: int = 1
    """The factor by which a plain socket's buffers may grow for long responses or long requests."""

    @property
    def send_bytes_max(self) -> int:
        return self._grown(self.send_bytes)

    @property
    def receive_bytes_max(self) -> int:
        return self._grown(self.receive_bytes)

    def _grown(self, size_bytes: int) -> int:
        return min(size_bytes * self.growth, INT_MAX) if size_bytes > 0 else -1


SYSTEM_BUFFERS = SocketBuffers()


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundListener:
    """Bound listening sockets; ``port`` is the actual port when 0 was requested (the same for IPv4 and IPv6)."""

    port: int
    close: Callable[[], None]
    pause: Callable[[], None]
    """Accept no connections until ``resume``; those that are made meanwhile wait."""
    resume: Callable[[], None]


class Network(Protocol):
    async def listen(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: TlsSource | None = None,
        backlog: int = 1024,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> BoundListener:
        """Bind ``host`` ("" means every interface, both address families) and accept; never shares a port with another
        socket.

        ``close`` stops listening; open connections stay.

        With ``tls`` a protocol gets ``connection_made`` when its connection is accepted, so that it counts against
        limits, and nothing else until its handshake is complete. A protocol with a method ``handshake_completed`` then
        gets the peer's certificate as DER (None without one). If the handshake fails, ``connection_lost`` gets
        `TlsFailed`. A buffered protocol must return a memoryview, never a bytearray: the stream slices it.
        """

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: TlsSource | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect; with ``tls``, the protocol gets ``connection_made`` when the handshake is complete. Raises
        ``OSError``, of which `TlsFailed` is one.
        """

    def tls_context(self, settings: TlsSettings) -> TlsContext:
        """A context for `listen` and `connect`. Raises `TlsUnusable`."""

    def host_name(self) -> str:
        """The name by which other hosts can presumably reach this one. It queries the resolver, so call it rarely."""

    def connection_stream(
        self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS
    ) -> ConnectionStream:
        """The stream for an accepted connection: sendfile on a plain socket; pread and write under TLS and in the
        simulator. ``buffers`` are those of the listener.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    clock: Clock
    randomness: Randomness
    files: Files
    network: Network
    threads: Threads
    workers: Workers
    kerberos: Kerberos | None = None
    """None where there is no Kerberos, as in the simulator."""
    watch_loop: Callable[[float, Callable[[float, str | None], None]], Callable[[], None]] | None = None
    """``stop = watch_loop(limit_s, on_held)``: call ``on_held`` with the seconds, and the callback if it is known, when
    a callback has held the running event loop for longer; None where no time passes meanwhile, as in the simulator."""
