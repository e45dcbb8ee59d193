"""The finalized feature levels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millbeck.metadata.features import ELIGIBLE_LEADER_REPLICAS_VERSION, METADATA_VERSION
from millbeck.metadata.records import FeatureLevelRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class FeaturesImage:
    """Levels by feature; a missing feature is at level 0."""

    levels: Mapping[str, int] = field(default_factory=dict)

    @property
    def metadata_version(self) -> int:
        """The finalized ``metadata.version``; 0 before the first record with one."""
        return self.levels.get(METADATA_VERSION, 0)

    @property
    def tracks_eligible_leaders(self) -> bool:
        """Whether eligible leader replicas are tracked (KIP-966)."""
        return self.levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) >= 1

    def level(self, feature: str) -> int:
        return self.levels.get(feature, 0)

    def records(self) -> Iterator[FeatureLevelRecord]:
        """The state as records; ``metadata.version`` is first, since it determines how to read the others."""
        if METADATA_VERSION in self.levels:
            yield FeatureLevelRecord(name=METADATA_VERSION, feature_level=self.levels[METADATA_VERSION])
        for name in sorted(self.levels):
            if name != METADATA_VERSION:
                yield FeatureLevelRecord(name=name, feature_level=self.levels[name])
