"""Sources, bad records, headers, and what a processor with state and timers may do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.serdes import avro, json
from millbeck.pipeline.topology.topology import Topology
from tests.spark.waves import Event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog
    from tests.spark.waves import Waves

NUMBERS = json("n INT")


class RunningTotal(StatefulProcessor):
    """Tells each key's total when event time has passed its last record."""

    def init(self, handle: Any) -> None:
        self._handle = handle
        self._total = handle.getValueState("total", "total BIGINT")

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        held = self._total.get()
        total = held[0] if held else 0
        latest = None
        for row in rows:
            total += row.value["n"]
            latest = row.timestamp if latest is None else max(latest, row.timestamp)
        self._total.update((total,))
        yield Row(key=key[0], value=f"so far {total}", timestamp=latest)

    def close(self) -> None: ...


def test_a_processor_keeps_its_state_over_a_restart(waves: Waves) -> None:
    rows = [{"numbers": [Event(f"case-{case}", {"n": case + wave}) for case in range(50)]} for wave in range(2)]

    def build(topology: Topology, topics: dict[str, str]) -> None:
        numbers = topology.stream(topics["numbers"], value=NUMBERS)
        numbers.process(RunningTotal(), key="STRING", value="STRING").to(topics["totals"])

    found = waves.run(build, rows, ["totals"])["totals"]
    expected = {(f"case-{case}", f"so far {total}") for case in range(50) for total in (case, 2 * case + 1)}
    assert set(found) == expected


def test_bad_records_go_to_their_own_topic_and_say_why(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Any
) -> None:
    source, packed, target, letters = make_topic(1), make_topic(1), make_topic(1), make_topic(1)
    log.put(source, [{"value": b'{"n": 1}', "key": b"a"}, {"value": b"nonsense", "key": b"b"}, {"value": b'{"n": 2}'}])
    log.put(packed, [{"value": b"\6", "key": b"c"}, {"value": b"nonsense", "key": b"d"}, {"value": None, "key": b"e"}])
    schema = avro({"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]})
    topology = Topology("letters", spark, bootstrap_servers=log.bootstrap, bad_records=letters)
    numbers = topology.stream(source, value=NUMBERS).merge(topology.stream(packed, value=schema))
    numbers.to(target, value=schema)
    query = topology.start(str(tmp_path), delivery="at_least_once", trigger={"availableNow": True})
    query.awaitTermination()
    values = [record.value for _, record in log.read(target)]
    assert sorted(values, key=str) == sorted([b"\2", b"\4", b"\6", None], key=str)
    found = {letter.key: letter for _, letter in log.read(letters)}
    assert {key: letter.value for key, letter in found.items()} == {b"b": b"nonsense", b"d": b"nonsense"}
    for key, topic, error in (
        (b"b", source, b"the value is no json of struct<n:int>: it begins with nonsense"),
        (b"d", packed, b"the value is no avro: 7 of its 8 bytes are left over"),
    ):
        assert dict(found[key].headers) == {
            "__millbeck.error.topic": topic.encode(),
            "__millbeck.error.partition": b"0",
            "__millbeck.error.offset": b"1",
            "__millbeck.error.error": error,
        }


def test_a_bad_record_fails_the_query_where_nothing_else_is_said(
    spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Any
) -> None:
    source, target = make_topic(1), make_topic(1)
    log.put(source, [{"value": b"nonsense"}])
    topology = Topology("strict", spark, bootstrap_servers=log.bootstrap)
    topology.stream(source, value=NUMBERS).to(target)
    query = topology.start(str(tmp_path), delivery="at_least_once", trigger={"availableNow": True})
    with pytest.raises(Exception, match=f"{source}-0 at offset 0: the value is no json"):
        query.awaitTermination()


def test_the_outline_tells_what_it_costs(spark: SparkSession, log: LiveLog, make_topic: Any) -> None:
    source = make_topic(1)
    topology = Topology("outlined", spark, bootstrap_servers=log.bootstrap)
    topology.stream(source, value=NUMBERS).group_by_key().count(store="how-many").to("counts")
    assert topology.outline.lines() == [
        f"reads    {source}",
        "shuffle  count, by key",
        "store    how-many: the count of each key",
        "writes   counts",
    ]


def test_a_frame_without_its_columns_is_refused(spark: SparkSession, log: LiveLog) -> None:
    topology = Topology("refused", spark, bootstrap_servers=log.bootstrap)
    with pytest.raises(TopologyError, match="missing: key"):
        topology.stream_of(spark.sql("SELECT 1 AS value, current_timestamp() AS timestamp"))
