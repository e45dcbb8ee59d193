"""The machine as the code sees it: clocks, randomness, files, network, threads and workers behind small protocols.

``host`` implements them on the real machine and ``testing.sim`` in virtual time from one seed; every package above
reaches the machine through an `Environment` and nothing else, so the same broker runs on both. The event loop is
asyncio's in both worlds (the simulator subclasses it), so code in row 3 and above may use asyncio directly.

Contract of every implementation
- Calls on `File` and `Files` act at once and may block; code on the loop uses only those that are page-cache fast
  and sends the rest (``sync``, big unlinks and truncates) through `Threads`.
- What was written is durable only after ``sync`` of the file; a create, rename or unlink only after
  ``sync_directory`` of its parent. The simulated disk forgets the rest.
- Failures are ``OSError`` with ``errno`` set. A failed ``sync`` is never retried by the caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeVar, TypeVarTuple

from millbeck.kernel.file_slice import FileSlice as FileSlice
from millbeck.kernel.units import INT_MAX

if TYPE_CHECKING:
    import asyncio
    import ssl

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Given = TypeVar("Given")
Gain = TypeVar("Gain")
Bytes = bytes | bytearray | memoryview


class Clock(Protocol):
    """Two clocks. Deadlines use the monotonic one; only timestamps stored in records use the wall."""

    def monotonic(self) -> float:
        """Seconds that never go back; equal to the running loop's ``time()``."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970; may jump."""

    def busy_seconds(self) -> float:
        """Time the calling thread has run, or waited for a processor: what is left of elapsed time was idle."""


class Randomness(Protocol):
    def below(self, bound: int) -> int:
        """A uniform integer in ``[0, bound)``."""

    def uuid(self) -> bytes:
        """A random version 4 UUID as 16 bytes whose text form (URL-safe base64) does not start with a dash."""


class OpenMode(Enum):
    READ = "read"  # must exist
    WRITE = "write"  # read and write; created when missing


class File(Protocol):
    """An open file, addressed by position; it has no cursor. After ``close`` every call but ``close`` is EBADF."""

    path: str

    @property
    def reads_nowait(self) -> bool:
        """False where the kernel cannot say whether a read would wait: `read_nowait` is then always None, and the
        caller goes to a thread at once instead of trying again."""

    def read(self, size: int, position: int) -> bytes:
        """Up to ``size`` bytes at ``position``; shorter only at the end of the file."""

    def read_counted(self, size: int, position: int) -> tuple[bytes, int]:
        """Like `read`, and how many bytes the disk was asked for because of it, readahead included; all of them where
        nobody counts."""

    def read_nowait(self, size: int, position: int) -> Bytes | None:
        """Like `read`, but None when some of it would have to come from the disk (readahead has been started)."""

    def write(self, buffers: Sequence[Bytes], position: int) -> None:
        """Write all buffers one after another at ``position``, or raise; part of them may then be in the file."""

    def allocate(self, size: int) -> None:
        """Reserve ``size`` bytes (``preallocate``); a shorter file's size becomes ``size``, a longer one keeps its."""

    def truncate(self, size: int) -> None: ...

    def size(self) -> int: ...

    def sync(self) -> None:
        """Data and size are durable when this returns (fdatasync)."""

    def start_writeback(self, position: int, size: int) -> None:
        """Ask the kernel to begin writing a range; a hint, never an error."""

    def descriptor(self) -> int | None:
        """The descriptor for sendfile, or None where files are not real."""

    def close(self) -> None: ...


class FileLock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    def open(self, path: str, mode: OpenMode) -> File: ...

    def names(self, directory: str) -> list[str]:
        """Entries of a directory, sorted."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def make_directory(self, path: str) -> None:
        """Create it and its parents; no error when it exists. Durable after ``sync_directory`` of the parents."""

    def rename(self, old: str, new: str) -> None:
        """Atomic; replaces ``new``."""

    def unlink(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None:
        """Unlink a directory and all below it; it must exist."""

    def sync_directory(self, path: str) -> None: ...

    def lock(self, path: str) -> FileLock:
        """Take the advisory lock of the lock file at ``path`` (created when missing), or raise ``BlockingIOError``
        when another holds it, be it in this process. A process that dies lets go."""

    def free_bytes(self, path: str) -> int: ...

    def total_bytes(self, path: str) -> int:
        """Size of the volume a path is on."""

    def open_files_limit(self) -> int:
        """How many files and sockets this process may have open."""


class Threads(Protocol):
    """Off-loop work. A job is a pure function of immutable arguments or of one leased file."""

    def run(self, job: Callable[[*Ts], T], *arguments: *Ts) -> Awaitable[T]:
        """Start at once or queue; ``BlockingIOError`` when the bounded queue is full."""


class WorkStopped(Exception):
    """Whoever wanted the work does not want it any more."""


class WorkerDied(Exception):
    """The process that did the work ended before it was done; what it had written may be there in part."""


class Workplace(Protocol):
    """What a job of `Workers` finds where it runs, wherever that is."""

    @property
    def files(self) -> Files: ...

    def monotonic(self) -> float: ...

    def pause(self, seconds: float) -> None:
        """Rest (0 only looks whether the work is still wanted); `WorkStopped` when it is not."""

    def report(self, progress: object) -> None:
        """Let the loop know something; `WorkStopped` when the work is not wanted any more."""

    def word(self) -> object:
        """What the loop said last, None before it has said anything."""


class Errand(Protocol[Gain]):
    """A job on its way; used on the loop."""

    @property
    def result(self) -> asyncio.Future[Gain]:
        """What the job returns or raises; `WorkStopped` after `stop`, `WorkerDied` when its process did.
        Cancelling it stops the job."""

    def tell(self, word: object) -> None:
        """A word for the job, which may look at it whenever it likes. Later words replace earlier ones."""

    def stop(self) -> None:
        """Ask the job to end. It may be done before it hears of that."""


class Workers(Protocol):
    """Work that keeps a processor busy for seconds or hours: beside the loop's process, not in a thread of it.

    A job is a function of a module (not a closure) and one argument. Job, argument, result and words go from one
    process to the other, so they are plain values.
    """

    def start(
        self, job: Callable[[Workplace, Given], Gain], argument: Given, on_report: Callable[[object], None]
    ) -> Errand[Gain]:
        """Begin at once; ``on_report`` is called on the loop with what the job reports, in order."""

    def close(self) -> None:
        """End the workers that have nothing to do; later work starts new ones."""


Part = Bytes | FileSlice


class Outlet(Protocol):
    """The one writer of a connection's socket, and its reader: everything goes through it, in order, never blocking.

    A slice that is shorter than promised when its turn comes aborts the connection, since its header is on the wire.
    """

    @property
    def queued_bytes(self) -> int:
        """Bytes handed over and not yet taken by the kernel."""

    def send(self, parts: Sequence[Part]) -> None:
        """Hand over; what the kernel takes at once is not queued. Never raises: a failure aborts the connection.
        Buffers must not change afterwards. On a closed or closing outlet the parts are dropped, slices released."""

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None:
        """Read from now on, in place of the transport where that is cheaper; called from ``connection_made``. The two
        are those of the transport's protocol."""

    def pause_reading(self) -> None:
        """Read nothing until `resume_reading`."""

    def resume_reading(self) -> None:
        """Go on after `pause_reading`."""

    def receive(self, buffer: memoryview) -> int:
        """Bytes that have come meanwhile, read into ``buffer`` without waiting; 0 when there are none, or when only the
        transport can read them. Its ``buffer_updated`` is not called for them."""

    def expect_long_requests(self) -> None:
        """Requests come that are much longer than what the kernel holds of one; may be said any number of times."""

    def resume_writing(self) -> None:
        """The protocol forwards its own ``resume_writing`` here (the outlet sets the transport's limits itself)."""

    def on_drained(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` whenever the queue becomes empty after not having been; never from inside ``send``."""

    def close_when_drained(self) -> None:
        """Close the transport once everything handed over so far is sent; later sends are dropped."""

    def closed(self) -> None:
        """The connection is gone (called from ``connection_lost``): release every queued slice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketBuffers:
    """What the kernel holds for a connection in each direction; -1 leaves it to the system."""

    send_bytes: int = -1
    receive_bytes: int = -1
    growth: int = 1
    """How many times as much it may become on a plain socket with long replies, or with long requests."""

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
class Listening:
    """Bound sockets; ``port`` is the real one when 0 was asked for (the same for IPv4 and IPv6)."""

    port: int
    close: Callable[[], None]


class Network(Protocol):
    async def listen(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        backlog: int = 1024,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> Listening:
        """Bind ``host`` ("" = every interface, both families) and serve; never shares a port with another socket.

        ``close`` ends listening; open connections stay. A buffered protocol hands out a memoryview, never a bytearray:
        asyncio's TLS layer slices it.
        """

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]: ...

    def host_name(self) -> str:
        """What other hosts can call this one, as far as it knows itself; asks the resolver, so seldom."""

    def outlet(self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS) -> Outlet:
        """Sendfile on a plain socket; pread and write under TLS and in the simulator. ``buffers`` are those of the
        listener that accepted the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    clock: Clock
    randomness: Randomness
    files: Files
    network: Network
    threads: Threads
    workers: Workers
