from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from millbeck.cli import waiting
from millbeck.cli.waiting import Teller, tell_of_outages
from millbeck.client.addresses import Address
from millbeck.client.outages import Outage

AWAY = Outage(address=Address("mill", 9092), since_s=100.0, reason="connection refused")


def test_a_short_outage_is_not_worth_a_word() -> None:
    teller = Teller(patience_s=3)
    assert teller.look(AWAY, 102.9, 0) == []
    assert teller.look(None, 103.4, 0) == []


def test_a_long_one_is_told_once_with_when_and_why() -> None:
    teller = Teller(patience_s=3)
    (line,) = teller.look(AWAY, 103.0, 1_000_000)
    assert re.fullmatch(r"waiting for mill:9092 since \d\d:\d\d:\d\d: connection refused", line)
    assert teller.look(AWAY, 150.0, 1_000_047) == []


def test_the_end_is_told_when_it_lasts() -> None:
    teller = Teller(patience_s=3)
    teller.look(AWAY, 103.0, 0)
    assert teller.look(None, 104.0, 0) == [], "between two attempts nobody is waited for"
    assert teller.look(AWAY, 104.5, 0) == []
    assert teller.look(None, 112.0, 0) == []
    assert teller.look(None, 113.0, 0) == ["mill:9092 answers again after 12 s"]
    assert teller.look(None, 114.0, 0) == []


def test_a_second_outage_is_told_like_the_first() -> None:
    teller = Teller(patience_s=3)
    teller.look(AWAY, 103.0, 0)
    teller.look(None, 104.0, 0)
    assert len(teller.look(None, 105.0, 0)) == 1
    later = Outage(address=AWAY.address, since_s=110.0, reason="no answer to Fetch")
    assert teller.look(later, 112.0, 0) == []
    assert len(teller.look(later, 113.0, 0)) == 1


class _Config:
    fetch_max_wait_ms = 0


class _Cluster:
    config = _Config()

    def __init__(self) -> None:
        self.since_s = asyncio.get_running_loop().time()

    def outage(self) -> Outage:
        return Outage(address=Address("mill", 9092), since_s=self.since_s, reason="gone")


def test_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.001)

    async def work() -> None:
        cluster: Any = _Cluster()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(tell_of_outages(cluster), 0.05)

    asyncio.run(work())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert re.fullmatch(r"millbeck: waiting for mill:9092 since .*: gone\n", printed.err)
