"""The context that all components of a node share: its environment, configuration, metadata and topics.

`Broker` adds the components themselves, for request handlers. A component that needs a few others names them in a
context of its package: `replicas.context`, `transactions.context`, `share.context`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Protocol, TypeVar, TypeVarTuple

from millbeck.kernel.environment import Environment
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.isolation import Isolation
from millbeck.kernel.options import ConfigLayers
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.security.audit.events import AuditTrail
from millbeck.security.authorizer import Authorizer
from millbeck.security.principal import Principal
from millbeck.server.config import NodeConfig
from millbeck.server.local_topics import LocalTopics
from millbeck.server.loop.deadlines import Deadlines
from millbeck.server.loop.tasks import run_off_loop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

REPORTED_EVERY_S: Final = 10.0
RaisingLine = tuple[type[Exception], str, int]

log = logging.getLogger(__name__)


def _raising_line(error: Exception) -> RaisingLine:
    """The kind of exception, and the function and line that raised it."""
    place = error.__traceback__
    if place is None:
        return type(error), "", 0
    while place.tb_next is not None:
        place = place.tb_next
    code = place.tb_frame.f_code
    return type(error), f"{code.co_filename} {code.co_name}", place.tb_lineno


class ChangeOrigin(Protocol):
    """The part of a call that identifies who changes the metadata."""

    @property
    def principal(self) -> Principal: ...

    @property
    def peer_host(self) -> str: ...

    @property
    def api_name(self) -> str: ...


class NodeContext:
    def __init__(
        self,
        environment: Environment,
        config: NodeConfig,
        *,
        turn: EventBatch,
        deadlines: Deadlines,
        authorizer: Authorizer,
        node_id: int,
        cluster_id: str,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.environment = environment
        self.config = config
        self.turn = turn
        self.deadlines = deadlines
        self.authorizer = authorizer
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.spawn = spawn
        self.image: MetadataImage = EMPTY
        self.default_texts = config.option_set.default_texts()
        self.topics = LocalTopics()
        self.unexpected_errors = 0
        self._reported: dict[RaisingLine, tuple[float, int]] = {}
        """When exceptions of each line of code were logged last, and how many have not been since."""
        self.seam_failures: Counter[str] = Counter()
        """Exceptions of plugins, by the setting that configures them."""
        self.audit: AuditTrail | None = None
        """Receives logins, denials and changes; None if there is no audit."""
        self.isolation = Isolation(self._count_unexpected)
        """Isolates failures in loops of coordinators and the controller over many entities."""

    def now_ms(self) -> int:
        """The wall clock in milliseconds, for timestamps."""
        return self.environment.clock.wall_ns() // 1_000_000

    async def in_thread(self, job: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Run a job on the thread pool, waiting for room when its queue is full."""
        return await run_off_loop(self.environment.threads, job, *arguments)

    def report(self, error: Exception, where: str = "unexpected error") -> None:
        """Count an unexpected exception, and log it with its traceback; it is not returned to any client.

        Those that one line raises are logged once in a while: a client that has found one must not fill the disk.
        """
        self._count_unexpected()
        raised_by, now = _raising_line(error), self.environment.clock.monotonic()
        logged_at, unlogged = self._reported.get(raised_by, (-REPORTED_EVERY_S, 0))
        if now - logged_at < REPORTED_EVERY_S:
            self._reported[raised_by] = (logged_at, unlogged + 1)
            return
        others = f" ({unlogged} others like it since the last message)" if unlogged else ""
        log.error("%s%s", where, others, exc_info=error)
        self._reported[raised_by] = (now, 0)

    def seam_failed(self, setting: str, error: Exception) -> None:
        """Count an exception of a plugin configured by ``setting``; only the first one is logged with its traceback,
        since every request may raise one."""
        self.seam_failures[setting] += 1
        if self.seam_failures[setting] == 1:
            log.error("the plugin of %s has failed; further failures are only counted", setting, exc_info=error)

    def _count_unexpected(self) -> None:
        self.unexpected_errors += 1

    def layers(self, image: MetadataImage, overrides: Mapping[str, str]) -> ConfigLayers:
        """The configuration layers in order of precedence: topic or group overrides, then this node's configuration."""
        return ConfigLayers(
            overrides=overrides,
            dynamic_broker=image.configs.of_broker(self.node_id),
            dynamic_default=image.configs.of_all_brokers(),
            static=self.config.texts,
            defaults=self.default_texts,
        )
