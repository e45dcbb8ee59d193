"""Databases for the tests of connectors; each is started once."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if any("tests/interop" in one for one in sys.argv):
    from tests.interop.connect import databases

    @pytest.fixture(scope="session")
    def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        with databases.postgresql(tmp_path_factory.mktemp("postgresql")) as url:
            yield url

    @pytest.fixture(scope="session")
    def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        with databases.mariadb(tmp_path_factory.mktemp("mariadb")) as url:
            yield url

    @pytest.fixture(params=["postgresql", "mariadb"])
    def database(request: pytest.FixtureRequest) -> str:
        found: str = request.getfixturevalue(request.param)
        return found
