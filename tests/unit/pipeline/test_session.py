"""A session is told which Java and Python to use, and knows the format."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline import session
from millbeck.pipeline.errors import ConnectMissing
from millbeck.pipeline.spark_format import MillbeckFormat


class FakeBuilder:
    """Notes what it is given and makes a session that notes what is registered."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}
        self.registered: list[type] = []
        self.dataSource = self

    def appName(self, name: str) -> FakeBuilder:  # noqa: N802
        return self.config("name", name)

    def master(self, master: str) -> FakeBuilder:
        return self.config("master", master)

    def remote(self, address: str) -> FakeBuilder:
        return self.config("remote", address)

    def create(self) -> FakeBuilder:
        return self

    def config(self, name: str, value: str) -> FakeBuilder:
        self.given[name] = value
        return self

    def register(self, kind: type) -> None:
        self.registered.append(kind)

    def getOrCreate(self) -> FakeBuilder:  # noqa: N802
        return self


def test_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = FakeBuilder()
    fake: Any = type("FakeSession", (), {"builder": builder})
    monkeypatch.setattr(session, "SparkSession", fake)
    monkeypatch.setattr(session, "find_java", lambda: Path("/some/java"))
    monkeypatch.setattr(session, "install_exception_hook", lambda: None)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "before")
    monkeypatch.delenv("PYSPARK_PYTHON")
    session.spark_session("revenue", settings={"spark.sql.shuffle.partitions": "9"})
    assert os.environ["JAVA_HOME"] == "/some/java"
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "before"
    assert builder.registered == [MillbeckFormat]
    assert (builder.given["name"], builder.given["master"]) == ("revenue", "local[*]")
    assert builder.given["spark.sql.shuffle.partitions"] == "9"
    assert builder.given["spark.driver.host"] == "127.0.0.1"


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> FakeBuilder:
    builder = FakeBuilder()
    fake: Any = type("FakeSession", (), {"builder": builder})
    monkeypatch.setattr(session, "SparkSession", fake)
    monkeypatch.setattr(session, "find_java", lambda: Path("/some/java"))
    monkeypatch.setattr(session, "install_exception_hook", lambda: None)
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "before")
    return builder


def test_a_cluster_is_reached_from_outside(builder: FakeBuilder) -> None:
    session.spark_session(master="spark://host:7077")
    assert "spark.driver.host" not in builder.given
    assert builder.given["spark.stage.maxConsecutiveAttempts"] == "1"


def test_a_master_on_this_machine_needs_no_address_of_it(builder: FakeBuilder) -> None:
    session.spark_session(master="spark://127.0.0.1:7077")
    assert builder.given["spark.driver.host"] == "127.0.0.1"


def test_a_connect_server_has_a_java_of_its_own(builder: FakeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_is_installed", lambda module: True)
    session.spark_session("revenue", master="sc://host:15002", settings={"spark.sql.shuffle.partitions": "9"})
    assert os.environ["JAVA_HOME"] == "before"
    assert (builder.given["name"], builder.given["remote"]) == ("revenue", "sc://host:15002")
    assert builder.given["spark.sql.shuffle.partitions"] == "9"
    assert [name for name in builder.given if name.startswith("spark.") and not name.startswith("spark.sql.")] == []
    assert builder.registered == [MillbeckFormat]


def test_what_speaks_to_a_connect_server_may_be_missing(builder: FakeBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_CONNECT_MODULES", ("json", "not_installed", "not_installed.part"))
    with pytest.raises(ConnectMissing, match=r"\(not_installed, not_installed.part\): pip install"):
        session.spark_session(master="sc://host:15002")


def test_workers_may_have_another_python(builder: FakeBuilder) -> None:
    session.spark_session(master="spark://host:7077", settings={"spark.pyspark.python": "/opt/python"})
    assert os.environ["PYSPARK_PYTHON"] == "/opt/python"


def test_java_logs_quietly_unless_the_user_has_something_of_his_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    options = session._quietly({"spark.driver.extraJavaOptions": "-Xss4m"})["spark.driver.extraJavaOptions"]
    file, rest = options.removeprefix("-Dlog4j2.configurationFile=file://").split()
    assert rest == "-Xss4m"
    assert "rootLogger" in Path(file).read_text()
    assert session._quietly({"spark.driver.extraJavaOptions": "-Dlog4j2.configurationFile=mine"}) == {}
    monkeypatch.setenv("SPARK_CONF_DIR", "/mine")
    assert session._quietly({}) == {}
