"""The jars of Spark's connector; the repository is a directory, by its file: address."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from millbeck.pipeline.errors import ConnectorMissing
from millbeck.pipeline.running.connector import ARTIFACTS, Artifact, connector_jars, has_connector
from tools import peers

CONTENT = b"a jar"


def _artifact(content: bytes = CONTENT) -> Artifact:
    return Artifact("org.example", "thing", "1.0", hashlib.sha256(content).hexdigest())


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    jar = tmp_path / "maven" / _artifact().path
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT)
    return {"MILLBECK_JARS": str(tmp_path / "jars"), "MILLBECK_MAVEN": (tmp_path / "maven").as_uri()}


def test_jars_are_fetched_once(environ: dict[str, str]) -> None:
    said: list[str] = []
    for _ in range(2):
        (jar,) = connector_jars(said.append, environ=environ, artifacts=[_artifact()])
        assert jar.read_bytes() == CONTENT
    assert said == [
        f"fetching Spark's Kafka connector into {environ['MILLBECK_JARS']}, once",
        "thing-1.0.jar: 0.0 MB (1 of 1)",
    ]


def test_a_jar_that_is_another_one_is_not_kept(environ: dict[str, str]) -> None:
    with pytest.raises(ConnectorMissing, match=r"is not thing-1\.0\.jar: its SHA-256 is"):
        connector_jars(lambda text: None, environ=environ, artifacts=[_artifact(b"other")])
    assert list(Path(environ["MILLBECK_JARS"]).iterdir()) == []


def test_without_the_network_it_says_what_to_do(environ: dict[str, str]) -> None:
    environ["MILLBECK_MAVEN"] = "file:///nowhere"
    with pytest.raises(ConnectorMissing, match="run millbeck pipeline jars where it can be, and copy the directory"):
        connector_jars(lambda text: None, environ=environ, artifacts=[_artifact()])


def test_without_a_repository_it_names_both_ways_to_get_it(tmp_path: Path) -> None:
    environ = {"MILLBECK_JARS": str(tmp_path)}
    with pytest.raises(ConnectorMissing, match="set MILLBECK_MAVEN to the address of a Maven repository") as raised:
        connector_jars(lambda text: None, environ=environ)
    assert '"spark.jars.packages" = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0,' in str(raised.value)


def test_a_connector_of_the_users_own_is_recognised() -> None:
    assert has_connector({"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"})
    assert has_connector({"spark.jars": "/opt/spark-sql-kafka-0-10_2.13-4.2.0.jar"})
    assert not has_connector({"spark.jars": "/opt/other.jar"})


def test_the_versions_are_those_that_are_tested() -> None:
    pinned = peers.pins()["spark-connector"]["artifacts"]
    assert [f"{each.group}:{each.name}:{each.version}" for each in ARTIFACTS] == pinned
