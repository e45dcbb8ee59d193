"""Which version of an API both sides speak, and how that is found out.

A client asks ApiVersions first, with the highest version it knows. A broker that does not know that version answers in
version 0 with UNSUPPORTED_VERSION and, if it is not too old, with the range it does know; the client asks again. Every
later request takes the highest version that both sides have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import millbeck
from millbeck.client.apis import API_VERSIONS, Call, call_of
from millbeck.client.errors import UnsupportedByBroker
from millbeck.kernel.errors import UnsupportedVersion, from_code
from millbeck.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

HIGHEST_ASKED: Final = 4
SOFTWARE_NAME: Final = "millbeck"


class NodeVersions:
    """What one node said that it supports."""

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
        """Whether the node has this API, in this version or a later one."""
        _, highest = self.ranges.get(call_of(request).key, (0, -1))
        return highest >= version


def identification() -> ApiVersionsRequest:
    """The question, and who asks."""
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=millbeck.__version__)


def choose_version(
    call: Call, ranges: Mapping[int, tuple[int, int]], version_max: int | None = None, version_min: int | None = None
) -> int:
    """The highest version that both sides have, not outside the caller's own bounds; raises `UnsupportedByBroker`."""
    offered = ranges.get(call.key)
    if offered is None:
        raise UnsupportedByBroker(f"the broker does not serve {call.name}")
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


class Negotiation:
    """The opening exchange: `version` is what to ask with; `step` takes the answer."""

    __slots__ = ("result", "version")

    def __init__(self) -> None:
        self.version = HIGHEST_ASKED
        self.result: NodeVersions | None = None

    def step(self, response: ApiVersionsResponse) -> bool:
        """Whether it is done, with `result` set; otherwise ask again with `version`. Raises the broker's error."""
        if response.error_code == 0:
            self.result = NodeVersions(response)
            return True
        if response.error_code != UnsupportedVersion.code or self.version == 0:
            raise from_code(response.error_code, "the broker refused to say which versions it has")
        named = [entry.max_version for entry in response.api_keys if entry.api_key == API_VERSIONS]
        # Each attempt asks with a lower version than the one before, so this ends.
        self.version = max(0, min(self.version - 1, *named)) if named else 0
        return False
