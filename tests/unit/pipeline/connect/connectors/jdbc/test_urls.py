"""URLs of databases."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.connectors.jdbc.urls import parsed_url, url_problem
from millbeck.pipeline.connect.errors import ConfigError


def test_hosts_ports_database_and_parameters() -> None:
    found = parsed_url("jdbc:postgresql://a:1,[::1]:2,c/shop%20one?user=u&password=p%26q")
    assert (found.kind, found.hosts, found.database) == ("postgresql", (("a", 1), ("::1", 2), ("c", 5432)), "shop one")
    assert found.parameters == {"user": "u", "password": "p&q"}
    assert "p&q" not in repr(found)
    assert parsed_url("jdbc:postgresql:shop").hosts == (("localhost", 5432),)
    assert parsed_url("jdbc:mysql://db/shop").hosts == (("db", 3306),)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://h/d?password=secret", "expected jdbc:postgresql://"),
        ("jdbc:oracle:thin://h/d", "no driver for jdbc:oracle"),
        ("jdbc:postgresql://h:99999/secret", "expected hosts"),
        ("jdbc:mariadb://secret", "name the database"),
    ],
)
def test_a_wrong_url_is_refused_without_repeating_it(url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        parsed_url(url)
    assert "secret" not in str(caught.value)
    assert problem in (url_problem(url) or "")
