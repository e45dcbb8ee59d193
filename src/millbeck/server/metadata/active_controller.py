"""Activate and deactivate the controller with quorum leadership, and run its periodic tasks.

When this node becomes the quorum leader, every registered broker gets a new session; when it resigns, the sessions are
dropped. In between, periodic tasks (fence brokers whose session expired, elect preferred leaders) are submitted when
they are due. Like any controller event they fail with NotController when another node has become leader.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import NotController
from millbeck.server.metadata.quorum_driver import MetadataLogFailed

if TYPE_CHECKING:
    from millbeck.controller.result import Result, Steps
    from millbeck.metadata.image import MetadataImage
    from millbeck.server.broker import Broker

RETRY_SECONDS: Final = 1.0
FAILURE_PAUSE_SECONDS: Final = 0.02


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
        if self._broker.config.token_secret:
            self._broker.spawn(self._remove_expired_tokens(epoch))

    def _lost(self, epoch: int) -> None:
        self._epoch = None
        self._broker.controller.deactivate()

    async def _work(self, epoch: int) -> None:
        while self._epoch == epoch:
            try:
                await self._wait_for_periodic_task()
                if self._epoch == epoch:
                    await self._do_duties()
            except NotController:
                # The quorum will report the new leader; until then there is nothing to do.
                await asyncio.sleep(RETRY_SECONDS)
            except MetadataLogFailed:
                # The process is about to exit.
                return
            except Exception as error:
                # Back off from the failed task only; other due tasks still run.
                self._broker.controller.task_failed(error, now_ms=self._now_ms())
                await asyncio.sleep(FAILURE_PAUSE_SECONDS)

    async def _remove_expired_tokens(self, epoch: int) -> None:
        """Remove expired delegation tokens; separate from the periodic tasks, because tokens expire by the wall
        clock."""
        broker = self._broker
        while self._epoch == epoch:
            await asyncio.sleep(broker.config.tokens.expiry_check_interval_ms / 1000)
            try:
                if self._epoch == epoch:
                    await broker.quorum.submit(self._expired_tokens)
            except (NotController, MetadataLogFailed):
                return
            except Exception as error:
                broker.report(error, "removing expired delegation tokens")

    def _expired_tokens(self, image: MetadataImage) -> Steps[Result[None]]:
        return self._broker.controller.tokens.remove_expired(image, now_ms=self._broker.environment.clock.wall_ms())

    async def _wait_for_periodic_task(self) -> None:
        broker, now_ms = self._broker, self._now_ms()
        due_ms = broker.controller.next_task_ms(broker.quorum.image, now_ms=now_ms)
        await asyncio.sleep(max(due_ms - now_ms, 0) / 1000)
        broker.controller.task_begun(now_ms=self._now_ms())

    async def _do_duties(self) -> None:
        broker = self._broker
        while await broker.quorum.submit(lambda image: broker.controller.periodic_task(image, now_ms=self._now_ms())):
            pass
