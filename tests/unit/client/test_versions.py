"""Both sides' versions meet at the highest they share, and the opening question finds them out."""

from __future__ import annotations

import pytest

from millbeck.client.apis import call_of
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.versions import NodeVersions, VersionNegotiation, choose_version, identification
from millbeck.kernel.errors import ApiError, UnsupportedVersion
from millbeck.wire.messages.fetch import FetchRequest
from millbeck.wire.messages.metadata import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    MetadataRequest,
    SupportedFeatureKey,
)

CHOICES = {
    "theirs is older": ((4, 11), {}, 11),
    "theirs is newer": ((4, 99), {}, 18),
    "capped": ((4, 18), {"version_max": 12}, 12),
    "needed and there": ((4, 18), {"version_min": 13}, 18),
    "needed by both bounds": ((4, 18), {"version_max": 9, "version_min": 9}, 9),
}
REFUSALS = {
    "too old": ((0, 3), {}),
    "too new": ((19, 20), {}),
    "capped below theirs": ((10, 18), {"version_max": 9}),
    "needed and missing": ((4, 11), {"version_min": 12}),
}


@pytest.mark.parametrize(("offered", "bounds", "expected"), CHOICES.values(), ids=CHOICES.keys())
def test_the_highest_common_version_is_chosen(offered: tuple[int, int], bounds: dict[str, int], expected: int) -> None:
    assert choose_version(call_of(FetchRequest), {1: offered}, **bounds) == expected


@pytest.mark.parametrize(("offered", "bounds"), REFUSALS.values(), ids=REFUSALS.keys())
def test_without_a_common_version_the_error_names_both_ranges(offered: tuple[int, int], bounds: dict[str, int]) -> None:
    with pytest.raises(UnsupportedByBroker, match=f"Fetch: the broker has versions {offered[0]} to {offered[1]}"):
        choose_version(call_of(FetchRequest), {1: offered}, **bounds)


def test_an_api_that_is_not_served_is_named() -> None:
    with pytest.raises(UnsupportedByBroker, match="does not support Fetch") as raised:
        choose_version(call_of(FetchRequest), {})
    assert raised.value.code == UnsupportedVersion.code


def versions_response(*ranges: tuple[int, int, int], error_code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in ranges],
    )


def test_negotiation_begins_at_the_top_and_ends_with_an_answer() -> None:
    negotiation = VersionNegotiation()
    assert negotiation.version == 4
    assert negotiation.step(versions_response((3, 0, 13)))
    assert negotiation.result is not None
    assert negotiation.result.ranges == {3: (0, 13)}


FALLBACKS = {
    "the broker says what it has": ([(18, 0, 2)], 2),
    "it says nothing": ([], 0),
    "it lies and names what was refused": ([(18, 0, 9)], 3),
    "it names other APIs only": ([(3, 0, 13)], 0),
}


@pytest.mark.parametrize(("ranges", "version"), FALLBACKS.values(), ids=FALLBACKS.keys())
def test_a_refused_version_is_followed_by_a_lower_one(ranges: list[tuple[int, int, int]], version: int) -> None:
    negotiation = VersionNegotiation()
    assert not negotiation.step(versions_response(*ranges, error_code=35))
    assert negotiation.version == version


def test_negotiation_ends_even_with_a_broker_that_always_refuses() -> None:
    negotiation = VersionNegotiation()
    refusal = versions_response((18, 0, 9), error_code=35)
    for version in (4, 3, 2, 1):
        assert negotiation.version == version
        negotiation.step(refusal)
    with pytest.raises(UnsupportedVersion):
        negotiation.step(refusal)


def test_another_error_ends_negotiation() -> None:
    with pytest.raises(ApiError, match="refused the ApiVersions"):
        VersionNegotiation().step(versions_response(error_code=42))


def test_features_are_kept() -> None:
    response = ApiVersionsResponse(
        supported_features=[SupportedFeatureKey(name="metadata.version", min_version=7, max_version=30)],
        finalized_features=[FinalizedFeatureKey(name="metadata.version", min_version_level=7, max_version_level=20)],
        finalized_features_epoch=5,
    )
    found = NodeVersions(response)
    assert found.supported_features == {"metadata.version": (7, 30)}
    assert found.finalized_features == {"metadata.version": (7, 20)}
    assert found.finalized_features_epoch == 5


def test_supports_looks_at_the_highest_version() -> None:
    found = NodeVersions(versions_response((3, 0, 12)))
    assert found.supports(MetadataRequest)
    assert found.supports(MetadataRequest, 12)
    assert not found.supports(MetadataRequest, 13)
    assert not found.supports(FetchRequest)


def test_the_client_says_who_it_is() -> None:
    request = identification()
    assert request.client_software_name == "millbeck"
    assert request.client_software_version
