"""A run from file to output: once, again after a failure, and not again when it cannot help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.running.definition import load
from millbeck.pipeline.running.run_directory import RunDirectory
from millbeck.pipeline.running.runner import Runner

if TYPE_CHECKING:
    from live_log import LiveLog
    from pyspark.sql import SparkSession

    from millbeck.pipeline.running.progress import Progress


def _run(file: Path, log: LiveLog, home: Path, **how: Any) -> tuple[list[Progress], list[str], RunDirectory]:
    definition = load(file).with_settings(bootstrap_servers=log.bootstrap, master="local[2]")
    directory = RunDirectory(home, definition.settings.name)
    watched: list[Progress] = []
    said: list[str] = []
    with directory.held():
        Runner(definition, directory, say=said.append, watch=watched.append, once=True, **how).run()
    return watched, said, directory


def test_a_file_of_steps_runs_once_exactly(spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(1)
    log.put(source, [{"value": json.dumps({"n": number}).encode(), "key": b"k"} for number in range(20)])
    file = tmp_path / "large.toml"
    file.write_text(
        f'[source]\ntopic = "{source}"\nvalue = "n INT"\n[[steps]]\nfilter = "value.n >= 15"\n'
        f'[[steps]]\nvalue = {{ twice = "value.n * 2" }}\n[sink]\ntopic = "{target}"\n'
    )
    watched, _, directory = _run(file, log, tmp_path)
    assert [json.loads(value or b"") for value in log.values(target)] == [{"twice": 2 * n} for n in range(15, 20)]
    assert sum(progress.rows for progress in watched) == 20
    assert directory.state() == "stopped"
    assert directory.status()["progress"]["rows"] == 20
    assert sum(log.committed("large", source).values()) == 20
    # Again: nothing is new, so nothing is written.
    _run(file, log, tmp_path)
    assert len(log.values(target)) == 5


def test_a_failure_is_tried_again_until_it_is_too_often(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path
) -> None:
    source, target = make_topic(1), make_topic(1)
    log.put(source, [{"value": b"nonsense"}])
    file = tmp_path / "strict.toml"
    file.write_text(f'[source]\ntopic = "{source}"\nvalue = "n INT"\n[sink]\ntopic = "{target}"\n')
    with pytest.raises(Exception, match="the value is no json"):
        _run(file, log, tmp_path, attempts_max=1)
    status = RunDirectory(tmp_path, "strict").status()
    assert status["state"] == "failed"
    assert status["restarts"] == 1


def test_a_wrong_topology_is_not_tried_again(spark: SparkSession, log: LiveLog, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("def build(topology):\n    pass\n")
    with pytest.raises(TopologyError, match="writes nothing"):
        _run(file, log, tmp_path)
    assert RunDirectory(tmp_path, "wrong").restarts() == 0
