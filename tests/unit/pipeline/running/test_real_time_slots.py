"""Real-time mode runs all tasks at once, so they are counted before the start; Spark is a fake here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.running import runner
from millbeck.pipeline.running.definition import Definition, Settings
from millbeck.pipeline.topology.real_time import RealTimeTopology, Slots

SOURCES, SHUFFLES = 4, 6


class Sessions:
    """Stands for Spark: a session has as many slots as its master says, here three for ``local[*]`` and clusters."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.masters: list[str] = []
        self.settings: dict[str, str] = {}
        topology = RealTimeTopology.__new__(RealTimeTopology)
        patch.setattr(RealTimeTopology, "slots", lambda self: Slots(SOURCES, SHUFFLES))
        patch.setattr(runner, "build_topology", lambda *given: topology)
        patch.setattr(runner, "connector_jars", lambda report: [Path("/jars/connector.jar")])
        patch.setattr(runner, "spark_session", self.start)

    def start(self, name: str, *, master: str, settings: dict[str, str]) -> Any:
        self.masters.append(master)
        self.settings = settings
        slots = int(master[len("local[") : -1]) if master.startswith("local[") and master != "local[*]" else 3
        return SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=slots), stop=lambda: None)


def _start(master: str, **spark: str) -> None:
    settings = Settings(name="p", master=master, trigger="real-time", spark=spark)
    runner.started(Definition(path=Path("p.py"), settings=settings, build=lambda topology: None), lambda text: None)


def test_all_cores_become_as_many_slots_as_there_are_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(monkeypatch)
    _start("local[*]", **{"spark.jars": "own.jar"})
    assert sessions.masters == ["local[*]", "local[10]"]
    assert sessions.settings["spark.jars"] == "own.jar,/jars/connector.jar"
    assert "jaas" in sessions.settings["spark.redaction.regex"]


def test_a_master_with_too_few_is_refused_with_both_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    Sessions(monkeypatch)
    _start("local[10]")
    with pytest.raises(
        TopologyError, match=r"4 partitions of sources and 6 of shuffles need 10 slots, and spark://a:1 has 3"
    ):
        _start("spark://a:1")
    with pytest.raises(TopologyError, match="not possible with Spark Connect"):
        _start("sc://a:1")
