"""Reading frames off a socket with one shared buffer.

Every connection of a loop receives into the same buffer, so an idle connection owns no memory. A frame that arrives
whole is handled in place as a view; one that does not is moved to a buffer of the connection's own, which grows with
what has been received, never with what the length prefix promises, and is dropped with the frame. The last such buffer
of the loop is kept for the next long frame, whichever connection brings it: to clear and fill a new one for each takes
a tenth of the time that a request of a megabyte takes altogether.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from millbeck.kernel.environment import Bytes

SHARED_BUFFER_BYTES: Final = 256 * 1024
FIRST_OWN_BUFFER_BYTES: Final = 64 * 1024
GROWTH: Final = 4
"""How much larger than what was received a connection's own buffer is made; the kept one may be larger by as much."""
SPARE_BUFFER_BYTES_MAX: Final = 2 * 1024 * 1024
SIZE_PREFIX: Final = Struct(">i")
_read_size: Final = SIZE_PREFIX.unpack_from
SMALLEST_FRAME_BYTES: Final = 8  # api key, version, correlation id


class SharedBuffer:
    """The receive buffer of one event loop. ``check_views`` makes an escaped view an error (tests)."""

    __slots__ = ("_check_views", "_spare", "buffer", "view")

    def __init__(self, size_bytes: int = SHARED_BUFFER_BYTES, *, check_views: bool = False) -> None:
        self.buffer = bytearray(size_bytes)
        self.view = memoryview(self.buffer)
        self._check_views = check_views
        self._spare: bytearray | None = None

    def take(self, size_bytes: int) -> bytearray:
        """A buffer of at least this size, and not many times larger, for a frame that comes in parts.

        What is in it means nothing.
        """
        spare = self._spare
        if spare is None or not size_bytes <= len(spare) <= GROWTH * size_bytes:
            return bytearray(size_bytes)
        self._spare = None
        return spare

    def give_back(self, buffer: bytearray) -> None:
        """Its frame is handled: the next one may have it, if it is of a size that is worth keeping."""
        if self._check_views:
            _check_no_views(buffer)
        if FIRST_OWN_BUFFER_BYTES < len(buffer) <= SPARE_BUFFER_BYTES_MAX:
            self._spare = buffer

    def after_dispatch(self) -> None:
        """In strict mode, make sure that no view of the buffer is left."""
        if self._check_views:
            self.view.release()
            _check_no_views(self.buffer)
            self.view = memoryview(self.buffer)


def _check_no_views(buffer: bytearray) -> None:
    """Resize it: that raises BufferError while any view of it is still alive."""
    buffer.append(0)
    buffer.pop()


def _next_size(filled: int) -> int:
    """How large a buffer may be that holds ``filled`` bytes of a longer frame."""
    return max(GROWTH * filled, FIRST_OWN_BUFFER_BYTES)


class FrameTooLarge(Exception):
    """The length prefix is negative, too small for a header, or above ``socket.request.max.bytes``."""


class FrameReader:
    """Turns what the socket delivers into frames; `take_frames` hands each out as a view without its prefix.

    The owner calls `buffer_for_receive` and `received` as asyncio's BufferedProtocol does. ``handle`` gets a view that
    is valid only until it returns, and says whether reading may go on; when it says no, the rest waits for `resume`.
    """

    __slots__ = (
        "_frame_bytes_max",
        "_handle",
        "_own",
        "_own_filled",
        "_own_start",
        "_own_target",
        "_own_view",
        "_shared",
    )

    def __init__(self, shared: SharedBuffer, frame_bytes_max: int, handle: Callable[[memoryview], bool]) -> None:
        self._shared = shared
        self._frame_bytes_max = frame_bytes_max
        self._handle = handle
        self._own: bytearray | None = None
        self._own_view: memoryview | None = None
        self._own_start = 0  # frames before it were handled
        self._own_filled = 0
        self._own_target = 0  # prefix and frame, once the prefix is known; 0 before

    @property
    def held_bytes(self) -> int:
        """Memory that this connection has of its own."""
        return 0 if self._own is None else len(self._own)

    @property
    def frame_bytes(self) -> int:
        """How long the frame is that comes in parts; 0 when there is none, or its length is not there yet."""
        return self._own_target

    def discard(self) -> None:
        """Let go of what was kept: there will be no more. The buffer may still be on loan to whoever reads."""
        self._own = None
        self._own_view = None

    @property
    def is_inside_frame(self) -> bool:
        return self._own is not None

    def buffer_for_receive(self) -> memoryview:
        """Where to receive next.

        A view, never the buffer itself: asyncio's TLS slices it, and a slice of a bytearray is a copy.
        """
        own = self._own
        if own is None:
            return self._shared.view
        target = self._own_target or SIZE_PREFIX.size
        if self._own_filled == len(own):
            self._grow(min(target, _next_size(self._own_filled)))
            own = self._own
            assert own is not None
        # Never read past this frame: what follows goes to the shared buffer again.
        self._own_view = memoryview(own)[self._own_filled : min(target, len(own))]
        return self._own_view

    def received(self, count: int) -> bool:
        """Handle what arrived; False when the handler asked to stop (the rest is kept)."""
        if self._own is None:
            view = self._shared.view
            goes_on, position = self._take_frames(view, 0, count)
            if position < count:
                self._keep(view[position:count])
            return goes_on
        if self._own_view is not None:
            self._own_view.release()
            self._own_view = None
        self._own_filled += count
        return self.resume()

    def keep(self, count: int) -> None:
        """Leave what arrived for `resume`: the handler asked to stop, and nothing was kept until now."""
        assert self._own is None, "there is no reading on behind kept bytes"
        self._keep(self._shared.view[:count])

    def resume(self) -> bool:
        """Go on with what was kept; False when the handler asked to stop again."""
        own = self._own
        if own is None:
            return True
        with memoryview(own) as view:
            start = self._own_start
            goes_on, position = self._take_frames(view, start, self._own_filled)
            # Frames that still wait stay where they are: moving them for each one handled would be quadratic.
            self._own_start = position
            rest = bytes(view[position : self._own_filled]) if goes_on and 0 < position < self._own_filled else None
        if rest is not None:
            self._drop()
            self._keep(rest)
        elif position == self._own_filled:
            self._drop()
        elif goes_on:
            self._learn_target()
        return goes_on

    def _take_frames(self, view: memoryview, position: int, end: int) -> tuple[bool, int]:
        handle = self._handle
        size: int
        while end - position >= 4:
            (size,) = _read_size(view, position)
            if size < SMALLEST_FRAME_BYTES or size > self._frame_bytes_max:
                raise FrameTooLarge(size)
            frame_end = position + 4 + size
            if frame_end > end:
                break
            frame = view[position + 4 : frame_end]
            goes_on = handle(frame)
            # By hand: an exception that was caught on the way may keep it, and a large buffer with it, in a cycle.
            frame.release()
            position = frame_end
            if not goes_on:
                return False, position
        return True, position

    def _keep(self, rest: memoryview | bytes) -> None:
        """Move the beginning of a frame to a buffer of its own, with room for its next part."""
        filled = len(rest)
        target = self._target_of(rest)
        own = self._shared.take(max(filled, SIZE_PREFIX.size, min(target, _next_size(filled))))
        # Through a view: a bytearray copies whatever is assigned to a slice of it once more on the way.
        memoryview(own)[:filled] = rest
        self._own = own
        self._own_start = 0
        self._own_filled = filled
        self._own_target = target

    def _learn_target(self) -> None:
        """Read the first kept frame's prefix, if there is one, and give the buffer room for its first part."""
        own = self._own
        assert own is not None
        filled = self._own_filled
        self._own_target = target = self._target_of(own) if filled >= SIZE_PREFIX.size else 0
        if filled == len(own) < target:
            self._grow(min(target, _next_size(filled)))

    def _target_of(self, kept: Bytes) -> int:
        """The size of the frame that begins here, prefix included; 0 when not even the prefix is there."""
        if len(kept) < SIZE_PREFIX.size:
            return 0
        size: int = SIZE_PREFIX.unpack_from(kept)[0]
        if size < SMALLEST_FRAME_BYTES or size > self._frame_bytes_max:
            raise FrameTooLarge(size)
        return SIZE_PREFIX.size + size

    def _grow(self, size_bytes: int) -> None:
        assert self._own is not None
        grown = self._shared.take(size_bytes)
        memoryview(grown)[: self._own_filled] = memoryview(self._own)[: self._own_filled]
        self._own = grown

    def _drop(self) -> None:
        if self._own is not None:
            self._shared.give_back(self._own)
            self._own = None
        self._own_start = 0
        self._own_filled = 0
        self._own_target = 0
