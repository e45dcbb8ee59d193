"""The active controller at work: what it remembers while this node leads the quorum, and what it does by itself.

When this node begins to lead, every broker gets a fresh session; when it ceases to, all of that is forgotten. In
between, duties that nobody asks for (a broker that is not heard of is fenced, leaders go back where they belong) are
submitted when they are due, and like any decision they fail when somebody else has begun to lead.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from millbeck.kernel.errors import ApiError, NotController
from millbeck.server.broker import Broker

RETRY_SECONDS: Final = 1.0

log = logging.getLogger(__name__)


class ActiveController:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._epoch: int | None = None
        broker.quorum.on_leadership(gained=self._gained, lost=self._lost)

    def _now_ms(self) -> int:
        return int(self._broker.environment.clock.monotonic() * 1000)

    def _gained(self, epoch: int) -> None:
        self._epoch = epoch
        self._broker.controller.activate(self._broker.quorum.image, now_ms=self._now_ms())
        self._broker.spawn(self._work(epoch))

    def _lost(self, epoch: int) -> None:
        self._epoch = None
        self._broker.controller.deactivate()

    async def _work(self, epoch: int) -> None:
        while self._epoch == epoch:
            try:
                await self._wait_for_duty()
                if self._epoch == epoch:
                    await self._do_duties()
            except NotController:
                # What comes next is told by the quorum; until then there is nothing to do.
                await asyncio.sleep(RETRY_SECONDS)
            except ApiError as error:
                log.warning("a duty of the controller failed and is tried again: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _wait_for_duty(self) -> None:
        broker, now_ms = self._broker, self._now_ms()
        due_ms = broker.controller.next_duty_ms(broker.quorum.image, now_ms=now_ms)
        await asyncio.sleep(max(due_ms - now_ms, 0) / 1000)

    async def _do_duties(self) -> None:
        broker = self._broker
        while await broker.quorum.submit(lambda image: broker.controller.duty(image, now_ms=self._now_ms())):
            pass
