from __future__ import annotations

from kio.schema.index import api_key_map, schema_name_map
from tests.model.wire import kio_oracle

from millbeck.wire.api_keys import API_VERSIONS, APIS, NEVER_FLEXIBLE

UNSTABLE = {22: {6}}
"""Versions that kio has and Kafka 4.3 does not serve unless told to."""


def test_versions_are_those_of_kafka() -> None:
    for key, api in APIS.items():
        expected = set(schema_name_map[api_key_map[key]]) - UNSTABLE.get(key, set())
        assert set(range(api.min_version, api.max_version + 1)) == expected, api.name


def test_flexible_versions_are_those_of_kafka() -> None:
    for key, api in APIS.items():
        for version in range(api.min_version, api.max_version + 1):
            assert kio_oracle.is_flexible(key, version) == (version >= api.flexible_from), f"{api.name} v{version}"


def test_keys_are_in_order_and_names_without_suffix() -> None:
    assert list(APIS) == sorted(APIS)
    assert APIS[API_VERSIONS].name == "ApiVersions"
    assert APIS[17].flexible_from == NEVER_FLEXIBLE
