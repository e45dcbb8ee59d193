"""Databases for the tests of connectors; each is started once."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

if any("tests/interop" in one for one in sys.argv):

    @pytest.fixture(scope="session")
    def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        from tests.interop.connect import databases

        if databases.postgres_programs() is None:
            pytest.skip("no PostgreSQL: apt-get install postgresql")
        with databases.postgresql(tmp_path_factory.mktemp("postgresql")) as url:
            yield url

    @pytest.fixture(scope="session")
    def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        from tests.interop.connect import databases

        if databases.mariadb_program() is None:
            pytest.skip("no MariaDB: apt-get install mariadb-server")
        with databases.mariadb(tmp_path_factory.mktemp("mariadb")) as url:
            yield url

    @pytest.fixture(params=["postgresql", "mariadb"])
    def database(request: pytest.FixtureRequest) -> str:
        found: str = request.getfixturevalue(request.param)
        return found
