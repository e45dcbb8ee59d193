"""One simulated file: what processes see, what is durable, and the writes in between.

``content`` is the page cache. ``durable`` is what is certain to survive a power loss; ``pending`` lists, in order, the
writes since the last sync. A power loss applies some of them to ``durable``, possibly partially, and loses the rest.
"""

from __future__ import annotations

import random

# Older changes become durable by themselves, as by the kernel's writeback: this bounds the memory of a run.
_PENDING_COUNT_MAX = 4096


class Inode:
    __slots__ = ("content", "durable", "is_linked", "modified_ms", "open_count", "pending")

    def __init__(self, modified_ms: int) -> None:
        self.content = bytearray()
        self.durable = bytearray()
        self.pending: list[tuple[int, bytes | None]] = []  # (position, bytes written) or (new size, None)
        self.modified_ms = modified_ms
        self.open_count = 0
        self.is_linked = True

    def write(self, data: bytes, position: int) -> int:
        """Change the page cache; returns by how much the file grew."""
        growth = _splice(self.content, data, position)
        self._remember(position, data)
        return growth

    def resize(self, size: int) -> int:
        growth = size - len(self.content)
        _resize(self.content, size)
        self._remember(size, None)
        return growth

    def _remember(self, position: int, data: bytes | None) -> None:
        self.pending.append((position, data))
        if len(self.pending) > _PENDING_COUNT_MAX:
            half = _PENDING_COUNT_MAX // 2
            for change in self.pending[:half]:
                self._apply(*change)
            del self.pending[:half]

    def sync(self) -> None:
        for position, data in self.pending:
            self._apply(position, data)
        self.pending.clear()

    def fail_sync(self) -> None:
        """Fail a sync as the kernel does: it reports the error once and marks the pages clean, so they stay readable
        but are never written.
        """
        self.pending.clear()

    def lose_power(self, generator: random.Random, survival: float) -> None:
        """Keep each pending change with probability ``survival``; a kept write may be torn, a lost one leave zeros."""
        for position, data in self.pending:
            if generator.random() < survival:
                if data and generator.random() < 0.25:
                    data = data[: generator.randrange(len(data))]
                self._apply(position, data)
            elif data and generator.random() < 0.25 and len(self.durable) < position + len(data):
                # The size reached the journal, the data did not.
                _resize(self.durable, position + len(data))
        self.pending.clear()
        self.content = bytearray(self.durable)

    def rot(self, bit: int) -> None:
        """Flip one bit permanently."""
        index, mask = bit >> 3, 1 << (bit & 7)
        self.content[index] ^= mask
        if index < len(self.durable):
            self.durable[index] ^= mask
        self.pending = [
            (position, _flip(data, index - position, mask) if data is not None else None)
            for position, data in self.pending
        ]

    def _apply(self, position: int, data: bytes | None) -> None:
        if data is None:
            _resize(self.durable, position)
        else:
            _splice(self.durable, data, position)


def _splice(image: bytearray, data: bytes, position: int) -> int:
    before = len(image)
    if position > before:
        image.extend(bytes(position - before))
    image[position : position + len(data)] = data
    return len(image) - before


def _resize(image: bytearray, size: int) -> None:
    if size < len(image):
        del image[size:]
    else:
        image.extend(bytes(size - len(image)))


def _flip(data: bytes, index: int, mask: int) -> bytes:
    if not 0 <= index < len(data):
        return data
    changed = bytearray(data)
    changed[index] ^= mask
    return bytes(changed)
