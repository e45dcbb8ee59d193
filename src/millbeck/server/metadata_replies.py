"""Encoded metadata replies, kept until the image changes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from millbeck.metadata.image import EMPTY, MetadataImage

CACHED_REPLIES_MAX: Final = 64


class MetadataReplies:
    """Bodies of one image by whatever else they depend on: version, dialled address, topics asked for, principal."""

    def __init__(self) -> None:
        self._image: MetadataImage = EMPTY
        self._bodies: dict[Hashable, bytes] = {}

    def get(self, image: MetadataImage, key: Hashable) -> bytes | None:
        if image is not self._image:
            self._image = image
            self._bodies.clear()
        return self._bodies.get(key)

    def put(self, key: Hashable, body: bytes) -> None:
        if len(self._bodies) >= CACHED_REPLIES_MAX:
            self._bodies.pop(next(iter(self._bodies)))
        self._bodies[key] = body
