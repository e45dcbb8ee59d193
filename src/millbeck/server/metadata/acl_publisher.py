"""Applies the ACLs of each published metadata image to the authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from millbeck.kernel.environment import Clock
from millbeck.kernel.ids import Uuid
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import AccessControlEntry, MetadataImage
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.server.loop.tasks import TimeSlices

SMALL_CHANGE_MAX: Final = 200
"""The number of changed entries that are applied to the index at once: about two milliseconds of work."""


class AclPublisher:
    def __init__(
        self, authorizer: StandardAuthorizer, clock: Clock, *, permissions_changed: Callable[[], Iterator[None]]
    ) -> None:
        """``permissions_changed`` is called after each change, and works in steps."""
        self._authorizer = authorizer
        self._permissions_changed = permissions_changed
        self._clock = clock
        self._applied: Mapping[Uuid, AccessControlEntry] = {}
        self.offset = -1
        """The metadata offset up to which ACLs have been applied."""

    async def publish(self, image: MetadataImage, delta: MetadataDelta) -> None:
        entries, changed = image.acls.by_id, delta.acls.changed
        if changed:
            slices = TimeSlices(self._clock)
            if len(changed) <= SMALL_CHANGE_MAX:
                removed = [self._applied[key] for key in changed if key in self._applied]
                self._authorizer.change(removed, [entries[key] for key in changed if key in entries])
            else:
                for _ in self._authorizer.replace(entries.values()):
                    await slices.yield_to_loop()
            self._applied = entries
            for _ in self._permissions_changed():
                await slices.yield_to_loop()
        self.offset = image.offset
