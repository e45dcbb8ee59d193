"""A cache of encoded Metadata responses, cleared when the image changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from millbeck.metadata.image import EMPTY, MetadataImage

CACHED_REPLIES_MAX: Final = 64
CACHED_BYTES_MAX: Final = 4 * 1024 * 1024
"""The limit for all bodies together. A body contains the names of its topics, so this bounds the keys too."""


class MetadataReplies:
    """Response bodies of one image, by version, dialled address, requested topics and principal."""

    def __init__(self) -> None:
        self._image: MetadataImage = EMPTY
        self._bodies: dict[Hashable, bytes] = {}
        self.size_bytes = 0

    def follow(self, image: MetadataImage) -> None:
        """Clear the cache if ``image`` is not the one it belongs to; this also releases the old image, which may be
        large."""
        if image is not self._image:
            self._image = image
            self._bodies.clear()
            self.size_bytes = 0

    def get(self, image: MetadataImage, key: Hashable) -> bytes | None:
        self.follow(image)
        return self._bodies.get(key)

    def put(self, key: Hashable, body: bytes) -> None:
        if len(body) > CACHED_BYTES_MAX or key in self._bodies:
            return
        self.size_bytes += len(body)
        self._bodies[key] = body
        while len(self._bodies) > CACHED_REPLIES_MAX or self.size_bytes > CACHED_BYTES_MAX:
            self.size_bytes -= len(self._bodies.pop(next(iter(self._bodies))))
