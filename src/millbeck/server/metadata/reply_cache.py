"""Encoded metadata replies, kept until the image changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from millbeck.metadata.image import EMPTY, MetadataImage

CACHED_REPLIES_MAX: Final = 64
CACHED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of all bodies together. The topics a body answers for are in it, so this bounds the keys too."""


class MetadataReplies:
    """Bodies of one image by whatever else they depend on: version, dialled address, topics asked for, principal."""

    def __init__(self) -> None:
        self._image: MetadataImage = EMPTY
        self._bodies: dict[Hashable, bytes] = {}
        self.size_bytes = 0

    def get(self, image: MetadataImage, key: Hashable) -> bytes | None:
        if image is not self._image:
            self._image = image
            self._bodies.clear()
            self.size_bytes = 0
        return self._bodies.get(key)

    def put(self, key: Hashable, body: bytes) -> None:
        if len(body) > CACHED_BYTES_MAX or key in self._bodies:
            return
        self.size_bytes += len(body)
        self._bodies[key] = body
        while len(self._bodies) > CACHED_REPLIES_MAX or self.size_bytes > CACHED_BYTES_MAX:
            self.size_bytes -= len(self._bodies.pop(next(iter(self._bodies))))
