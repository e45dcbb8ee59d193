from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from millbeck.cli import outage_messages
from millbeck.cli.outage_messages import LeaderlessReporter, OutageReporter, report_outages
from millbeck.client.addresses import Address
from millbeck.client.outages import Outage
from millbeck.kernel.ids import TopicPartition

AWAY = Outage(address=Address("mill", 9092), since_s=100.0, reason="connection refused")


def test_a_short_outage_is_not_worth_a_word() -> None:
    teller = OutageReporter(patience_s=3)
    assert teller.evaluate(AWAY, 102.9, 0) == []
    assert teller.evaluate(None, 103.4, 0) == []


def test_a_long_one_is_told_once_with_when_and_why() -> None:
    teller = OutageReporter(patience_s=3)
    (line,) = teller.evaluate(AWAY, 103.0, 1_000_000)
    assert re.fullmatch(r"waiting for mill:9092 since \d\d:\d\d:\d\d: connection refused", line)
    assert teller.evaluate(AWAY, 150.0, 1_000_047) == []


def test_the_end_is_told_when_it_lasts() -> None:
    teller = OutageReporter(patience_s=3)
    teller.evaluate(AWAY, 103.0, 0)
    assert teller.evaluate(None, 104.0, 0) == [], "between two attempts nobody is waited for"
    assert teller.evaluate(AWAY, 104.5, 0) == []
    assert teller.evaluate(None, 112.0, 0) == []
    assert teller.evaluate(None, 113.0, 0) == ["mill:9092 answers again after 12 s"]
    assert teller.evaluate(None, 114.0, 0) == []


def test_a_second_outage_is_told_like_the_first() -> None:
    teller = OutageReporter(patience_s=3)
    teller.evaluate(AWAY, 103.0, 0)
    teller.evaluate(None, 104.0, 0)
    assert len(teller.evaluate(None, 105.0, 0)) == 1
    later = Outage(address=AWAY.address, since_s=110.0, reason="no answer to Fetch")
    assert teller.evaluate(later, 112.0, 0) == []
    assert len(teller.evaluate(later, 113.0, 0)) == 1


class _Config:
    fetch_max_wait_ms = 0


class _Cluster:
    config = _Config()

    def __init__(self) -> None:
        self.since_s = asyncio.get_running_loop().time()

    def outage(self) -> Outage:
        return Outage(address=Address("mill", 9092), since_s=self.since_s, reason="gone")


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outage_messages, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(outage_messages, "LOOK_SECONDS", 0.001)

    async def work() -> None:
        cluster: Any = _Cluster()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(report_outages(cluster), 0.05)

    asyncio.run(work())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"millbeck: waiting for mill:9092 since .*: gone\n", printed.err)


ORDERS, BILLS = TopicPartition("orders", 0), TopicPartition("bills", 3)


def test_a_partition_without_a_leader_for_longer_than_an_election_takes_is_named_once() -> None:
    reporter = LeaderlessReporter("read")
    assert reporter.evaluate([ORDERS], 100.0) == []
    assert reporter.evaluate([ORDERS, BILLS], 109.9) == []
    assert reporter.evaluate([ORDERS, BILLS], 110.0) == [
        "no leader, so records are not read for now: orders-0; see millbeck doctor"
    ]
    assert reporter.evaluate([ORDERS, BILLS], 119.0) == []
    assert reporter.evaluate([BILLS], 120.0) == [
        "no leader, so records are not read for now: bills-3; see millbeck doctor",
        "there is a leader again, records are read: orders-0",
    ]
    assert reporter.evaluate([BILLS], 140.0) == []


def test_a_partition_that_is_elected_a_leader_in_time_is_not_named() -> None:
    reporter = LeaderlessReporter("read")
    assert reporter.evaluate([ORDERS], 100.0) == []
    assert reporter.evaluate([], 109.0) == []
    assert reporter.evaluate([ORDERS], 110.0) == [], "counted from when it was lost again"
    assert reporter.evaluate([ORDERS], 119.9) == []


def test_of_many_partitions_without_a_leader_some_are_named() -> None:
    reporter = LeaderlessReporter("read")
    many = [TopicPartition("orders", index) for index in range(12)]
    reporter.evaluate(many, 0.0)
    (line,) = reporter.evaluate(many, 10.0)
    assert "orders-9 and 2 more;" in line
    assert "orders-10" not in line
