"""ApiVersions: the APIs and versions this node supports.

Behaviour
- Only APIs that work are listed: clients enable features by this list.
- A request of a version above the supported ones is answered in version 0 with UNSUPPORTED_VERSION and the full list,
  so that the client can retry; the connection stays open (see `dispatch`).
- Produce is advertised from version 0 although 3 is the oldest supported: librdkafka before 2.9 looks for the old
  versions to decide which codecs it may use, and silently stops compressing when they are missing (KAFKA-18659).
Versions
- 3: the client must send its software name and version; their characters are checked.
- Below 4, supported features whose lowest level is 0 are left out: old Java decoders refuse them (KAFKA-17492).
"""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.kernel.errors import InvalidRequest, UnsupportedVersion
from millbeck.kernel.names import is_software_name
from millbeck.metadata.features import KRAFT_VERSION, FeatureRange
from millbeck.metadata.image import MetadataImage
from millbeck.server.network.call import Call
from millbeck.server.network.route import Route, handles
from millbeck.wire.messages.metadata import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)


def served_versions(routes: tuple[Route, ...]) -> list[ApiVersion]:
    return [ApiVersion(route.api_key, route.advertised_min, route.max_version) for route in routes]


def fallback(served: list[ApiVersion]) -> ApiVersionsResponse:
    """The version 0 response to a request that is too new."""
    return ApiVersionsResponse(error_code=UnsupportedVersion.code, api_keys=served)


def response(
    served: list[ApiVersion],
    image: MetadataImage,
    version: int,
    *,
    supported_features: Mapping[str, FeatureRange],
    kraft_version: int = 0,
) -> ApiVersionsResponse:
    """``kraft_version`` is the quorum's finalized level, which the metadata image does not contain."""
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


@handles(18, needs=[])
def handle_api_versions(call: Call, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not is_software_name(name) or not is_software_name(version):
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
