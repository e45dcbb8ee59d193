"""Report on standard error when a command waits for a broker that is down or a partition without a leader.

It also reports when the broker is back, or the partition has a leader again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.client.cluster import Cluster
    from millbeck.client.consumer import Consumer
    from millbeck.client.outages import Outage
    from millbeck.client.producer import Producer
    from millbeck.kernel.ids import TopicPartition

PATIENCE_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.5
LEADERLESS_SECONDS: Final = 10.0
"""The time after which a leaderless partition is reported; an election takes seconds."""
NAMED_MAX: Final = 10


async def report_outages(cluster: Cluster) -> None:
    """Poll a client's cluster state for outages, for as long as the client lives."""
    import asyncio

    loop = asyncio.get_running_loop()
    # A consumer's fetch normally waits this long at the broker.
    patience_s = PATIENCE_SECONDS + getattr(cluster.config, "fetch_max_wait_ms", 0) / 1000
    teller = OutageReporter(patience_s)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for line in teller.evaluate(cluster.outage(), loop.time(), time.time()):
            click.echo(f"millbeck: {line}", err=True)


class OutageReporter:
    """Decides when to print a line: when an outage lasts longer than the limit, and when it is over."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._reported: str | None = None
        self._since_s = 0.0
        self._ended_s: float | None = None

    def evaluate(self, outage: Outage | None, now_s: float, wall_s: float) -> list[str]:
        is_long = outage is not None and now_s - outage.since_s >= self._patience_s
        if self._reported is not None:
            if is_long:
                self._ended_s = None
                return []
            # Between two connection attempts there is briefly no outage, so an outage is over only if there is none for
            # a while.
            self._ended_s = now_s if self._ended_s is None else self._ended_s
            if now_s - self._ended_s < 2 * LOOK_SECONDS:
                return []
            line = f"{self._reported} answers again after {self._ended_s - self._since_s:.0f} s"
            self._reported = self._ended_s = None
            return [line]
        if not is_long:
            return []
        assert outage is not None
        self._reported, self._since_s = str(outage.address), outage.since_s
        began = time.strftime("%H:%M:%S", time.localtime(wall_s - (now_s - outage.since_s)))
        return [f"waiting for {outage.address} since {began}: {outage.reason}"]


async def report_leaderless_partitions(client: Consumer | Producer, done: str) -> None:
    """Poll a client, for as long as it lives, for leaderless partitions that cannot be ``done`` (read or written): the
    client continues with the others without reporting these."""
    import asyncio

    loop = asyncio.get_running_loop()
    reporter = LeaderlessReporter(done)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for line in reporter.evaluate(client.partitions_without_leader(), loop.time()):
            click.echo(f"millbeck: {line}", err=True)


class LeaderlessReporter:
    """Decides when to print a line: when a partition has had no leader for a while, and when it has one again."""

    def __init__(self, done: str) -> None:
        self._done = done
        self._since_s: dict[TopicPartition, float] = {}
        self._reported: set[TopicPartition] = set()

    def evaluate(self, leaderless: list[TopicPartition], now_s: float) -> list[str]:
        back = sorted(self._reported.difference(leaderless))
        self._reported.difference_update(back)
        self._since_s = {each: self._since_s.get(each, now_s) for each in leaderless}
        news = [
            each
            for each, since_s in self._since_s.items()
            if each not in self._reported and now_s - since_s >= LEADERLESS_SECONDS
        ]
        self._reported.update(news)
        lines = []
        if news:
            lines.append(f"no leader, so records are not {self._done} for now: {named(news)}; see millbeck doctor")
        if back:
            lines.append(f"there is a leader again, records are {self._done}: {named(back)}")
        return lines


def named(partitions: list[TopicPartition]) -> str:
    """The names of the first ones, and the number of the others."""
    more = len(partitions) - NAMED_MAX
    return ", ".join(map(str, partitions[:NAMED_MAX])) + (f" and {more} more" if more > 0 else "")
