"""A run from file to output: once, again after a failure, and not again when it cannot help."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.errors import (
    BadRecord,
    DefinitionError,
    RecordsLost,
    TopicChanged,
    TopicMissing,
    TopologyError,
)
from millbeck.pipeline.running.definition import load
from millbeck.pipeline.running.lag import Lags
from millbeck.pipeline.running.run_directory import RunDirectory
from millbeck.pipeline.running.runner import Runner
from millbeck.pipeline.running.skips import SkippedRecord, Skips

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.pipeline.running.progress import BatchProgress
    from tests.spark.live_log import LiveLog

NOBODY = 1 << 23
"""Above every process id of Linux."""


def _run(file: Path, log: LiveLog, home: Path, **how: Any) -> tuple[list[BatchProgress], list[str], RunDirectory]:
    definition = load(file).with_settings(bootstrap_servers=log.bootstrap, master="local[2]")
    directory = RunDirectory(home, definition.settings.name)
    watched: list[BatchProgress] = []
    said: list[str] = []

    def watch(progress: BatchProgress) -> None:
        watched.append(progress)
        with urlopen(directory.status()["metrics"], timeout=10) as answer:
            said.extend(answer.read().decode().splitlines())

    with directory.held():
        Runner(definition, directory, watch=watch, once=True, **{"report": said.append, **how}).run()
    return watched, said, directory


def test_a_file_of_steps_runs_once_exactly(spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(1)
    log.put(source, [{"value": json.dumps({"n": number}).encode(), "key": b"k"} for number in range(20)])
    file = tmp_path / "large.toml"
    file.write_text(
        f'[source]\ntopic = "{source}"\nvalue = "n INT"\n[[steps]]\nfilter = "value.n >= 15"\n'
        f'[[steps]]\nvalue = {{ twice = "value.n * 2" }}\n[sink]\ntopic = "{target}"\n'
    )
    watched, said, directory = _run(file, log, tmp_path)
    assert [json.loads(value or b"") for value in log.values(target)] == [{"twice": 2 * n} for n in range(15, 20)]
    assert sum(progress.rows for progress in watched) == 20
    assert 'millbeck_pipeline_rows_total{pipeline="large"} 20' in said
    assert 'millbeck_pipeline_running{pipeline="large"} 1' in said
    assert directory.state() == "stopped"
    assert directory.status()["metrics"] is None
    assert directory.status()["progress"]["rows"] == 20
    assert sum(log.committed("large", source).values()) == 20
    # Again: nothing is new, so nothing is written.
    _run(file, log, tmp_path)
    assert len(log.values(target)) == 5


@pytest.mark.parametrize(
    ("named", "used"),
    [(None, "{home}/copy/checkpoint"), ("here", "{cwd}/here"), ("s3a://bucket/copy", "s3a://bucket/copy")],
)
def test_a_checkpoint_is_the_same_wherever_it_is_named_from(
    named: str | None, used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "copy.toml"
    file.write_text('[source]\ntopic = "in"\n[sink]\ntopic = "out"\n')
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    definition = load(file).with_settings(checkpoint=named)
    runner = Runner(definition, RunDirectory(tmp_path, "copy"), report=lambda text: None, watch=lambda progress: None)
    assert runner._checkpoint == used.format(home=tmp_path, cwd=tmp_path / "elsewhere")


def test_a_failure_is_tried_again_until_it_is_too_often(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path
) -> None:
    file = tmp_path / "early.toml"
    file.write_text(f'[source]\ntopic = "not-there-yet"\n[sink]\ntopic = "{make_topic(1)}"\n')
    said: list[str] = []
    with pytest.raises(TopicMissing, match="there is no topic not-there-yet") as raised:
        _run(file, log, tmp_path, attempts_max=1, report=said.append)
    assert "\n" not in str(raised.value)
    assert said == [f"failed: {raised.value}; trying again in 1 s"]
    directory = RunDirectory(tmp_path, "early")
    assert (directory.status()["state"], directory.restarts()) == ("failed", 1)
    assert directory.status()["error"] == str(raised.value)
    assert "Streaming Query" in (directory.path / "failure").read_text()


def test_a_bad_record_is_not_tried_again(spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path) -> None:
    source, target = make_topic(1), make_topic(1)
    log.put(source, [{"value": b"nonsense"}])
    file = tmp_path / "strict.toml"
    file.write_text(f'[source]\ntopic = "{source}"\nvalue = "n INT"\n[sink]\ntopic = "{target}"\n')
    with pytest.raises(BadRecord, match=f"^{source}-0 at offset 0: the value is no json of .* skip NAME {source}:0:0$"):
        _run(file, log, tmp_path)
    directory = RunDirectory(tmp_path, "strict")
    assert directory.restarts() == 0
    # What waits is counted in the log, and a record that is skipped does not wait any more.
    log.put(source, [{"value": b'{"n": 7}'}])
    assert Lags().of(directory.status()) == 2
    Skips(directory.path).add([SkippedRecord(source, 0, 0)])
    directory.write_status(process=NOBODY)
    _, said, _ = _run(file, log, tmp_path)
    assert f"skipping records: {source}:0:0" in said
    assert log.values(target) == [b'{"n":7}']
    assert Lags().of(directory.status()) == 0
    # It was not this process that supervised it.
    assert (directory.state(), directory.status()["error"]) == (
        "killed",
        f"the process {NOBODY} that supervised it was killed",
    )


def test_records_that_are_gone_and_a_topic_made_anew_are_told_at_once(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path
) -> None:
    source, target = make_topic(1), make_topic(1)
    file = tmp_path / "copy.toml"
    file.write_text(f'delivery = "at_least_once"\n[source]\ntopic = "{source}"\n[sink]\ntopic = "{target}"\n')
    log.put(source, [{"value": b"x"}] * 5)
    _run(file, log, tmp_path)
    log.put(source, [{"value": b"y"}] * 5)
    log.delete_records(source, 8)
    with pytest.raises(RecordsLost, match=f"^{source}-0 begins at offset 8 now; offsets 5 to 7 were deleted"):
        _run(file, log, tmp_path)
    log.delete(source)
    log.create(source)
    with pytest.raises(TopicChanged, match=f"^topic {source} was deleted and created again .* Use a new checkpoint"):
        _run(file, log, tmp_path)
    assert RunDirectory(tmp_path, "copy").restarts() == 0


def test_a_wrong_expression_is_told_with_its_file_and_its_place(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path
) -> None:
    source = make_topic(1)
    file = tmp_path / "wrong.py"
    file.write_text(
        "from millbeck.pipeline.topology.serdes import json\n\ndef build(topology):\n"
        f"    sales = topology.stream('{source}', value=json('n INT'))\n"
        "    sales.filter(\n        lambda r: r.value.m > 1).to('out')\n"
    )
    with pytest.raises(TopologyError, match=rf"^{file}:5 \(filter\): .*`m`"):
        _run(file, log, tmp_path)
    steps = tmp_path / "steps.toml"
    steps.write_text(
        f'[source]\ntopic = "{source}"\nvalue = "n INT"\n[[steps]]\nfilter = "value.n > 1"\n'
        '[[steps]]\nkey = "value.m"\n[sink]\ntopic = "out"\n'
    )
    with pytest.raises(DefinitionError, match=rf"^{steps}: step 2 \(key\): .*`m`"):
        _run(steps, log, tmp_path)


def test_a_wrong_topology_is_not_tried_again(spark: SparkSession, log: LiveLog, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("def build(topology):\n    pass\n")
    with pytest.raises(TopologyError, match="has no output"):
        _run(file, log, tmp_path)
    assert RunDirectory(tmp_path, "wrong").restarts() == 0


@pytest.mark.long
def test_a_checkpoint_with_final_results_keeps_them(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Path
) -> None:
    source, target = make_topic(1), make_topic(1)
    file = tmp_path / "windows.py"
    text = (
        "from millbeck.pipeline.topology.windows import tumbling\n"
        "def build(topology):\n"
        f"    numbers = topology.stream({source!r}).group_by_key()\n"
        f"    numbers.windowed_by(tumbling('10 seconds'){{emit}}).count().to({target!r})\n"
    )
    file.write_text(text.format(emit=", emit='final'"))
    log.put(source, [{"key": b"a", "value": b"x", "timestamp": at} for at in (1_000, 2_000)])
    _run(file, log, tmp_path)
    assert log.values(target) == []
    file.write_text(text.format(emit=""))
    log.put(source, [{"key": b"a", "value": b"x", "timestamp": 50_000}])
    _, said, _ = _run(file, log, tmp_path)
    told = [line for line in said if "keeps them" in line]
    assert told == ['this checkpoint has windows with final results, and keeps them: emit="update" needs a new one']
    log.put(source, [{"key": b"a", "value": b"x", "timestamp": 51_000}])
    _run(file, log, tmp_path)
    assert log.values(target) == [b"2"]
