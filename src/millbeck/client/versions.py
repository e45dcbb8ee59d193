"""API version negotiation with a broker.

A client sends ApiVersions first, with the highest version it supports. A broker that does not support that version
answers in version 0 with UNSUPPORTED_VERSION and, unless it is very old, with the range it supports; the client retries
with that. Every later request uses the highest version that both sides support.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import millbeck
from millbeck.client.apis import API_VERSIONS, Call, call_of
from millbeck.client.errors import UnsupportedByBroker
from millbeck.kernel.errors import UnsupportedVersion, from_code
from millbeck.wire.messages.metadata import ApiVersionsRequest, ApiVersionsResponse

HIGHEST_ASKED: Final = 4
SOFTWARE_NAME: Final = "millbeck"


class NodeVersions:
    """The API versions that one node supports."""

    __slots__ = ("finalized_features", "finalized_features_epoch", "ranges", "supported_features")

    def __init__(self, response: ApiVersionsResponse) -> None:
        self.ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        self.supported_features = {
            feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features
        }
        self.finalized_features = {
            feature.name: (feature.min_version_level, feature.max_version_level)
            for feature in response.finalized_features
        }
        self.finalized_features_epoch = response.finalized_features_epoch

    def supports(self, request: type[object], version: int = 0) -> bool:
        """Whether the node supports this API, in this version or a later one."""
        _, highest = self.ranges.get(call_of(request).key, (0, -1))
        return highest >= version


def identification() -> ApiVersionsRequest:
    """The ApiVersions request, with this client's name and version."""
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=millbeck.__version__)


def choose_version(
    call: Call, ranges: Mapping[int, tuple[int, int]], version_max: int | None = None, version_min: int | None = None
) -> int:
    """The highest version both sides support, within the caller's bounds; raises `UnsupportedByBroker`."""
    offered = ranges.get(call.key)
    if offered is None:
        raise UnsupportedByBroker(f"the broker does not support {call.name}")
    highest = min(call.max_version, offered[1])
    lowest = max(call.min_version, offered[0])
    if version_max is not None:
        highest = min(highest, version_max)
    if version_min is not None:
        lowest = max(lowest, version_min)
    if highest < lowest:
        raise UnsupportedByBroker(
            f"{call.name}: the broker has versions {offered[0]} to {offered[1]}, "
            f"this client needs one of {max(call.min_version, version_min or 0)} "
            f"to {min(call.max_version, call.max_version if version_max is None else version_max)}"
        )
    return highest


class VersionNegotiation:
    """The ApiVersions exchange: send a request in `version`; `step` handles the response."""

    __slots__ = ("result", "version")

    def __init__(self) -> None:
        self.version = HIGHEST_ASKED
        self.result: NodeVersions | None = None

    def step(self, response: ApiVersionsResponse) -> bool:
        """Whether it is done, with `result` set; otherwise retry with `version`. Raises the broker's error."""
        if response.error_code == 0:
            self.result = NodeVersions(response)
            return True
        if response.error_code != UnsupportedVersion.code or self.version == 0:
            raise from_code(response.error_code, "the broker refused the ApiVersions request")
        named = [entry.max_version for entry in response.api_keys if entry.api_key == API_VERSIONS]
        # Each retry uses a lower version than the one before, so this terminates.
        self.version = max(0, min(self.version - 1, *named)) if named else 0
        return False
