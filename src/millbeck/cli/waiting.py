"""A command that waits says for whom: standard error tells when a broker is away for a while, and when it is back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from millbeck.client.cluster import Cluster
    from millbeck.client.outages import Outage

PATIENCE_SECONDS: Final = 3.0
LOOK_SECONDS: Final = 0.5


async def tell_of_outages(cluster: Cluster) -> None:
    """Look at a client's cluster from time to time, for as long as the client lives."""
    import asyncio

    loop = asyncio.get_running_loop()
    # A consumer lets its broker think for that long about every fetch.
    patience_s = PATIENCE_SECONDS + getattr(cluster.config, "fetch_max_wait_ms", 0) / 1000
    teller = Teller(patience_s)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for line in teller.look(cluster.outage(), loop.time(), time.time()):
            click.echo(f"millbeck: {line}", err=True)


class Teller:
    """Decides what is worth a line: one when an outage outlasts patience, one when it is over."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._told_of: str | None = None
        self._since_s = 0.0
        self._ended_s: float | None = None

    def look(self, outage: Outage | None, now_s: float, wall_s: float) -> list[str]:
        is_long = outage is not None and now_s - outage.since_s >= self._patience_s
        if self._told_of is not None:
            if is_long:
                self._ended_s = None
                return []
            # Between two attempts nobody is waited for, for a moment: the end must last to be one.
            self._ended_s = now_s if self._ended_s is None else self._ended_s
            if now_s - self._ended_s < 2 * LOOK_SECONDS:
                return []
            line = f"{self._told_of} answers again after {self._ended_s - self._since_s:.0f} s"
            self._told_of = self._ended_s = None
            return [line]
        if not is_long:
            return []
        assert outage is not None
        self._told_of, self._since_s = str(outage.address), outage.since_s
        began = time.strftime("%H:%M:%S", time.localtime(wall_s - (now_s - outage.since_s)))
        return [f"waiting for {outage.address} since {began}: {outage.reason}"]
