"""Outputs that begin at one source are written from one reading of it, and a checkpoint outlives their number."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology import serdes
from millbeck.pipeline.topology.paths import apart
from millbeck.pipeline.topology.topology import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog

NUMBERS = serdes.json("n INT")
MakeTopic = Callable[..., str]
Build = Callable[[Topology], None]


class Application:
    """A topology that is started again and again on one checkpoint."""

    def __init__(self, spark: SparkSession, log: LiveLog, checkpoint: Path) -> None:
        self._spark = spark
        self._log = log
        self._checkpoint = checkpoint

    def run(self, build: Build, *, is_apart: bool = False, **settings: Any) -> int:
        """Process what is there; returns the number of rows read. ``is_apart``: as earlier versions did."""
        topology = Topology("paths", self._spark, bootstrap_servers=self._log.bootstrap, **settings)
        build(topology)
        if is_apart:
            paths = [path for _, records in topology._outputs for path in records.paths]
            topology._outgoing_for = lambda checkpoint, partition_counts: apart(paths)  # type: ignore[method-assign]
        query = topology.start(str(self._checkpoint), delivery="at_least_once", trigger={"availableNow": True})
        query.awaitTermination()
        return sum(progress.numInputRows for progress in query.recentProgress)

    def sources(self) -> int:
        """The lines of offsets of the last batch."""
        offsets = self._checkpoint / "offsets"
        last = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
        return len((offsets / str(last)).read_text().splitlines()) - 2


@pytest.fixture
def application(spark: SparkSession, log: LiveLog, tmp_path: Path) -> Application:
    return Application(spark, log, tmp_path / "checkpoint")


def _numbers(*numbers: int) -> list[dict[str, Any]]:
    return [{"key": b"k%d" % (number % 2), "value": b'{"n": %d}' % number} for number in numbers]


def _values(log: LiveLog, topic: str) -> list[Any]:
    return sorted(json.loads(value) for value in log.values(topic))


def test_all_outputs_of_a_source_and_its_bad_records_come_from_one_reading(
    application: Application, log: LiveLog, make_topic: MakeTopic
) -> None:
    source, letters = make_topic(2), make_topic(1)
    copy, small, many, merged, filtered = (make_topic(2) for _ in range(5))
    log.put(source, [*_numbers(*range(10)), {"key": b"x", "value": b"nonsense"}])

    def build(topology: Topology) -> None:
        numbers = topology.stream(source, value=NUMBERS)
        numbers.to(copy)
        low, even = numbers.branch(lambda r: r.value.n < 3, lambda r: r.value.n % 2 == 0)
        low.map_values(lambda value: value.n).to(small)
        repeated = even.flat_map_values(lambda value: sf.array_repeat(value.n, value.n % 4))
        repeated.filter(lambda r: r.value > 4).to(many)
        low.merge(even.select_key(lambda r: sf.lit("even"))).map_values(lambda value: value.n * 10).to(merged)
        repeated.peek(lambda key, value: None).filter_not(lambda r: r.value > 4).to(filtered)

    assert application.run(build, bad_records=letters) == 11
    assert application.sources() == 1
    assert sorted(value["n"] for value in map(json.loads, log.values(copy))) == list(range(10))
    assert _values(log, small) == [0, 1, 2]
    assert _values(log, many) == [6, 6]
    assert _values(log, merged) == [0, 10, 20, 40, 60, 80]
    assert _values(log, filtered) == []
    assert [(record.key, record.value) for _, record in log.read(letters)] == [(b"x", b"nonsense")]
    # Without the topic the plan and the checkpoint are the same.
    log.put(source, _numbers(10))
    assert application.run(build) == 1
    assert application.sources() == 1
    assert _values(log, merged)[-1] == 100


def test_a_topic_for_bad_records_comes_and_goes_beside_state(
    application: Application, log: LiveLog, make_topic: MakeTopic
) -> None:
    source, letters, target = make_topic(2), make_topic(1), make_topic(1)

    def build(topology: Topology) -> None:
        topology.stream(source, value=NUMBERS).group_by_key().count().to(target)

    log.put(source, _numbers(0, 2))
    application.run(build)
    log.put(source, [*_numbers(4), {"key": b"x", "value": b"nonsense"}])
    with pytest.raises(Exception, match="the value is no json"):
        application.run(build)
    application.run(build, bad_records=letters)
    assert [record.key for _, record in log.read(letters)] == [b"x"]
    log.put(source, _numbers(6))
    application.run(build)
    assert _values(log, target) == [2, 3, 4]
    # A record that was skipped is not looked at, though nothing else is said of bad ones.
    log.put(source, [{"key": b"k0", "value": b"nonsense"}, *_numbers(8)])
    places = [(source, number, record.offset) for number, record in log.read(source) if record.value == b"nonsense"]
    application.run(build, skipped=places[1:] if len(places) > 1 else places)
    assert _values(log, target) == [2, 3, 4, 5]


def test_a_function_of_the_record_names_its_topic(
    application: Application, log: LiveLog, make_topic: MakeTopic
) -> None:
    source, odd, even = make_topic(1), make_topic(1), make_topic(2)

    def build(topology: Topology) -> None:
        numbers = topology.stream(source, value=NUMBERS).map_values(lambda value: value.n)
        names = sf.array(*map(sf.lit, (even, odd, "other")))
        numbers.to(lambda r: sf.element_at(names, r.value + 1), topics=[even, odd])

    log.put(source, _numbers(0, 1, 0))
    application.run(build)
    assert (_values(log, even), _values(log, odd)) == ([0, 0], [1])
    log.put(source, _numbers(2))
    with pytest.raises(Exception, match=f"to: a record goes to the topic other, and topics= has {even}, {odd}"):
        application.run(build)


def test_topics_and_partitions_that_cannot_be_are_refused(spark: SparkSession, log: LiveLog) -> None:
    numbers = Topology("refused", spark, bootstrap_servers=log.bootstrap).stream("numbers", value=NUMBERS)
    with pytest.raises(TopologyError, match="name the topics that the function chooses from"):
        numbers.to(lambda r: r.key)
    with pytest.raises(TopologyError, match="topics= needs a function of the record"):
        numbers.to("one", topics=["one", "other"])
    with pytest.raises(TopologyError, match="0 is not a number of partitions"):
        numbers.repartition(0)


@pytest.mark.long
def test_a_checkpoint_made_before_goes_on(application: Application, log: LiveLog, make_topic: MakeTopic) -> None:
    """Earlier versions read a source, and kept the state of an operator, once for each output."""
    source, letters = make_topic(2), make_topic(1)
    counts, large, copy = make_topic(1), make_topic(1), make_topic(1)

    def build(topology: Topology) -> None:
        numbers = topology.stream(source, value=NUMBERS)
        counted = numbers.group_by_key().count()
        counted.to(counts)
        counted.to_stream().filter(lambda r: r.value > 2).to(large)
        numbers.to(copy)

    log.put(source, _numbers(0, 2))
    application.run(build, is_apart=True)
    assert application.sources() == 3
    log.put(source, [*_numbers(4), {"key": b"x", "value": b"nonsense"}])
    application.run(build, bad_records=letters)
    log.put(source, _numbers(6))
    application.run(build)
    assert (_values(log, counts), _values(log, large)) == ([2, 3, 4], [3, 4])
    assert sorted(value["n"] for value in map(json.loads, log.values(copy))) == [0, 2, 4, 6]
    assert [record.key for _, record in log.read(letters)] == [b"x"]


@pytest.mark.long
def test_a_checkpoint_without_state_made_before_reads_its_source_once_now(
    application: Application, log: LiveLog, make_topic: MakeTopic
) -> None:
    source, first, second = make_topic(2), make_topic(1), make_topic(1)

    def build(topology: Topology) -> None:
        numbers = topology.stream(source, value=NUMBERS)
        numbers.to(first)
        numbers.to(second)

    log.put(source, _numbers(0, 1))
    assert (application.run(build, is_apart=True), application.sources()) == (4, 2)
    log.put(source, _numbers(2))
    assert (application.run(build), application.sources()) == (1, 1)
    for topic in (first, second):
        assert sorted(value["n"] for value in map(json.loads, log.values(topic))) == [0, 1, 2]


@pytest.mark.long
def test_a_python_function_sees_no_record_of_another_stream(
    application: Application, log: LiveLog, make_topic: MakeTopic
) -> None:
    source, odd, even = make_topic(1), make_topic(1), make_topic(1)

    def halved(number: int) -> int:
        assert number % 2 == 0
        return number // 2

    def build(topology: Topology) -> None:
        half = sf.udf(halved, "int")
        evens, odds = topology.stream(source, value=NUMBERS).branch(
            lambda r: r.value.n % 2 == 0, lambda r: sf.lit(True)
        )
        evens.map_values(lambda value: half(value.n)).to(even)
        odds.map_values(lambda value: value.n).to(odd)

    log.put(source, _numbers(*range(6)))
    application.run(build)
    assert (_values(log, even), _values(log, odd)) == ([0, 1, 2], [1, 3, 5])
