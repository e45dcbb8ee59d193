from __future__ import annotations

import subprocess
import sys

import pytest
from kio.schema.index import api_key_map, schema_name_map

from millbeck.wire.api_keys import API_VERSIONS, APIS, NEVER_FLEXIBLE
from millbeck.wire.schema import schema_of
from tests.model.wire import kio_oracle


def test_versions_are_those_of_kafka() -> None:
    for key, api in APIS.items():
        expected = set(schema_name_map[api_key_map[key]])
        assert set(range(api.min_version, api.max_version + 1)) == expected, api.name


def test_flexible_versions_are_those_of_kafka() -> None:
    for key, api in APIS.items():
        for version in range(api.min_version, api.max_version + 1):
            assert kio_oracle.is_flexible(key, version) == (version >= api.flexible_from), f"{api.name} v{version}"


def test_keys_are_in_order_and_names_without_suffix() -> None:
    assert list(APIS) == sorted(APIS)
    assert APIS[API_VERSIONS].name == "ApiVersions"
    assert APIS[17].flexible_from == NEVER_FLEXIBLE


def test_the_table_is_that_of_the_declarations() -> None:
    assert {api.key: schema_of(api.response).api_key for api in APIS.values()} == {key: key for key in APIS}
    assert set(APIS) == set(api_key_map)
    assert len(APIS) == len(list(APIS))
    assert 4 not in APIS
    with pytest.raises(KeyError):
        APIS[4]


def test_a_module_is_imported_when_its_api_is_asked_for() -> None:
    script = (
        "import sys, millbeck.wire.framing as framing\n"
        "def loaded(): return sorted(name for name in sys.modules if name.startswith('millbeck.wire.messages.'))\n"
        "assert loaded() == [], loaded()\n"
        "framing.response_prefix(3, 12, 1, 0)\n"
        "assert loaded() == ['millbeck.wire.messages.metadata'], loaded()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
