"""Cluster features: which levels this release supports, and what a level enables.

A feature that is not implemented stays at level 0, so its supported range is 0 to 0: a request for a higher level is
rejected with the feature's name. ``metadata.version`` determines which version of each record is written.
"""

from __future__ import annotations

from typing import NamedTuple

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
ELIGIBLE_LEADER_REPLICAS_VERSION = "eligible.leader.replicas.version"
GROUP_VERSION = "group.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"

MINIMUM_METADATA_VERSION = 7
"""The level of 3.3-IV3, the minimum of Kafka 4."""
LATEST_METADATA_VERSION = 30
"""4.3-IV0."""

ISR_SHRINK_KEEPS_LEADER_EPOCH_FROM = 12
"""Brokers below this version need a new leader epoch to notice an ISR shrink (KAFKA-15021)."""
SCRAM_FROM = 11
METADATA_TRANSACTIONS_FROM = 13
DELEGATION_TOKENS_FROM = 14
CONTROLLER_REGISTRATION_FROM = 15
DIRECTORY_ASSIGNMENT_FROM = 17
VOTERS_IN_LOG_FROM = 21
"""The first ``metadata.version`` with ``kraft.version`` 1."""
ELIGIBLE_LEADER_REPLICAS_FROM = 23
CORDONED_DIRECTORIES_FROM = 30

_CHANGES_METADATA = (8, 11, 13, 14, 15, 17, 23, 30)
"""The levels that added records or fields; a downgrade below one of these loses metadata."""

DEPENDENCIES: dict[tuple[str, int], int] = {
    (KRAFT_VERSION, 1): VOTERS_IN_LOG_FROM,
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1): ELIGIBLE_LEADER_REPLICAS_FROM,
}
"""Minimum ``metadata.version`` of a feature level."""

FROM_THE_START: tuple[tuple[str, int, int], ...] = (
    (GROUP_VERSION, 1, 22),
    (TRANSACTION_VERSION, 2, 24),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1, 26),
    (SHARE_VERSION, 1, 28),
    (STREAMS_VERSION, 1, 29),
)
"""Feature levels that a newly formatted directory starts with, from a ``metadata.version`` on."""

_RELEASES = {
    7: "3.3-IV3",
    8: "3.4-IV0",
    9: "3.5-IV0",
    10: "3.5-IV1",
    11: "3.5-IV2",
    12: "3.6-IV0",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    16: "3.7-IV1",
    17: "3.7-IV2",
    18: "3.7-IV3",
    19: "3.7-IV4",
    20: "3.8-IV0",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
}


class FeatureRange(NamedTuple):
    """The range of levels of a feature that a node supports (inclusive)."""

    min_level: int
    max_level: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.min_level <= level <= self.max_level


SUPPORTED_FEATURES: dict[str, FeatureRange] = {
    METADATA_VERSION: FeatureRange(MINIMUM_METADATA_VERSION, LATEST_METADATA_VERSION),
    ELIGIBLE_LEADER_REPLICAS_VERSION: FeatureRange(0, 1),
    GROUP_VERSION: FeatureRange(0, 1),
    KRAFT_VERSION: FeatureRange(0, 1),
    SHARE_VERSION: FeatureRange(0, 1),
    STREAMS_VERSION: FeatureRange(0, 1),
    TRANSACTION_VERSION: FeatureRange(0, 2),
}


UNSTABLE_FEATURES: dict[str, FeatureRange] = {
    SHARE_VERSION: FeatureRange(0, 2),
    TRANSACTION_VERSION: FeatureRange(0, 3),
}
"""Levels enabled by ``unstable.feature.versions.enable``, which Kafka 4.3 has not released.

``share.version`` 2 has dead-letter topics (KIP-1191), ``transaction.version`` 3 keeps prepared transactions for
two-phase commit (KIP-939)."""
DEAD_LETTERS_FROM = 2
KEEPS_PREPARED_FROM = 3


def supported_features(
    *, metadata_version_max: int | None = None, has_unstable: bool = False
) -> dict[str, FeatureRange]:
    """The features a node supports; with a ``metadata.version``, that is the highest one supported."""
    supported = {**SUPPORTED_FEATURES, **(UNSTABLE_FEATURES if has_unstable else {})}
    if metadata_version_max is None:
        return supported
    metadata_version = metadata_version_max
    supported[METADATA_VERSION] = FeatureRange(MINIMUM_METADATA_VERSION, min(metadata_version, LATEST_METADATA_VERSION))
    for (feature, level), needed in DEPENDENCIES.items():
        if needed > metadata_version:
            supported[feature] = FeatureRange(0, min(supported[feature].max_level, level - 1))
    return supported


def downgrade_loses_metadata(current: int, wanted: int) -> bool:
    """Whether a downgrade between two levels of ``metadata.version`` loses metadata."""
    return any(wanted < level <= current for level in _CHANGES_METADATA)


def release_name(metadata_version: int) -> str:
    """The release name of a level of ``metadata.version``, such as 4.3-IV0."""
    return _RELEASES.get(metadata_version, str(metadata_version))


def metadata_version_of(release: str) -> int:
    """The level of ``4.3-IV0``, or for ``4.3`` the latest of that release; raises ValueError if unknown."""
    levels = [level for level, name in _RELEASES.items() if name == release or name.partition("-")[0] == release]
    if not levels:
        raise ValueError(f"unknown release {release!r}: known are {', '.join(_RELEASES.values())}")
    return max(levels)
