"""ApiVersions: what this node serves.

Behaviour
- An API that is listed is one that works: clients switch features on by looking here.
- A request newer than ours is answered in version 0 with UNSUPPORTED_VERSION and the full list, so that the client can
  try again; the connection stays (see `dispatch`).
- Produce is advertised from version 0 although 3 is the oldest served: librdkafka before 2.9 looks for the old versions
  to decide which codecs it may use, and silently stops compressing when they are missing (KAFKA-18659).
Versions
- 3: the client must name itself and its version; characters are checked.
- Below 4, supported features whose lowest level is 0 are left out: old Java decoders refuse them (KAFKA-17492).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from millbeck.kernel.errors import InvalidRequest, UnsupportedVersion
from millbeck.metadata.features import KRAFT_VERSION, FeatureRange
from millbeck.metadata.image import MetadataImage
from millbeck.server.call import Call
from millbeck.server.dispatch import Route, handles
from millbeck.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def served_versions(routes: tuple[Route, ...]) -> list[ApiVersion]:
    return [ApiVersion(route.api_key, route.advertised_min, route.max_version) for route in routes]


def fallback(served: list[ApiVersion]) -> ApiVersionsResponse:
    """The version 0 answer to a request that is too new."""
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=served)


def response(
    served: list[ApiVersion],
    image: MetadataImage,
    version: int,
    *,
    supported_features: Mapping[str, FeatureRange],
    kraft_version: int = 0,
) -> ApiVersionsResponse:
    """``kraft_version`` is the quorum's own level, which the image does not know."""
    supported = [
        SupportedFeatureKey(name, levels.min_level, levels.max_level)
        for name, levels in sorted(supported_features.items())
        if levels.max_level > 0 and (version >= 4 or levels.min_level > 0)
    ]
    levels_in_use = {**image.features.levels, **({KRAFT_VERSION: kraft_version} if kraft_version else {})}
    finalized = [FinalizedFeatureKey(name, level, level) for name, level in sorted(levels_in_use.items())]
    return ApiVersionsResponse(
        api_keys=served,
        supported_features=supported,
        finalized_features_epoch=image.offset,
        finalized_features=finalized,
    )


@handles(18)
def handle_api_versions(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not _SOFTWARE.fullmatch(name) or not _SOFTWARE.fullmatch(version):
            raise InvalidRequest("client software name and version must be letters, digits, dots and dashes")
        call.connection.client_software = (name, version)
    broker = call.broker
    return response(
        call.connection.listener.served,
        broker.image,
        call.version,
        supported_features=broker.config.supported_features,
        kraft_version=broker.quorum.kraft_version,
    )
