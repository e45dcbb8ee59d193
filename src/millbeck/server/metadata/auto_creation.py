"""Create missing topics on first use, in the background as in Kafka: auto-created and internal topics.

`AutoCreation.request` returns at once; the client gets a retriable error and asks again. Requests go to the
controller one at a time, in the order of the clients' requests, and no topic is in two of them at once. While no
controller responds, at most `NAMES_MAX` topics are queued, each for at most `SECONDS_MAX`; then they are dropped until
a client requests them again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from millbeck.kernel.errors import ApiError, RequestTimedOut

if TYPE_CHECKING:
    from millbeck.controller.auto_creation import InternalTopic
    from millbeck.kernel.environment import Environment

NAMES_MAX: Final = 1000
SECONDS_MAX: Final = 60.0

log = logging.getLogger(__name__)


class _Creation(NamedTuple):
    names: list[str]
    made_as: Mapping[str, InternalTopic]
    deadline_s: float


class _Refusal(NamedTuple):
    reason: str
    at_s: float


class TopicCreator(Protocol):
    """The part of `Broker` that creates topics."""

    environment: Environment
    spawn: Callable[[Coroutine[Any, Any, None]], object]

    async def create_missing(
        self,
        names: Iterable[str],
        made_as: Mapping[str, InternalTopic] | None = None,
        *,
        timeout_s: float = SECONDS_MAX,
    ) -> dict[str, ApiError]: ...

    def report(self, error: Exception, where: str = "unexpected error") -> None: ...


class AutoCreation:
    def __init__(self, broker: TopicCreator) -> None:
        self._broker = broker
        self._queue: deque[_Creation] = deque()
        self._names: dict[str, None] = {}
        """Topics in the queue or in the request in flight."""
        self._refusals: dict[str, _Refusal] = {}
        """The last error per topic, so that retries of clients do not repeat the log line."""
        self._is_running = False

    def request(
        self, names: Iterable[str], made_as: Mapping[str, InternalTopic] | None = None, *, pause_s: float = 0.0
    ) -> None:
        """Queue topics for creation, unless already queued; topics beyond `NAMES_MAX` are ignored.

        ``made_as`` has the definitions of topics that are neither internal nor created with the broker's defaults.
        Topics whose creation was refused less than ``pause_s`` ago are not requested again.
        """
        now_s = self._broker.environment.clock.monotonic()
        room = NAMES_MAX - len(self._names)
        fresh = [
            name for name in dict.fromkeys(names) if name not in self._names and self._is_due(name, now_s, pause_s)
        ]
        wanted = fresh[:room]
        if not wanted:
            return
        self._names |= dict.fromkeys(wanted)
        self._queue.append(_Creation(wanted, made_as or {}, now_s + SECONDS_MAX))
        if not self._is_running:
            self._is_running = True
            self._broker.spawn(self._run())

    def _is_due(self, name: str, now_s: float, pause_s: float) -> bool:
        refusal = self._refusals.get(name)
        return refusal is None or now_s >= refusal.at_s + pause_s

    def refusals(self, names: Iterable[str]) -> dict[str, str]:
        """The errors of the last failed creation, for those of these topics that have one."""
        return {name: refusal.reason for name in names if (refusal := self._refusals.get(name)) is not None}

    async def _run(self) -> None:
        clock = self._broker.environment.clock
        try:
            while self._queue:
                names, made_as, deadline_s = self._queue[0]
                left_s = deadline_s - clock.monotonic()
                try:
                    errors: dict[str, ApiError] = dict.fromkeys(names, RequestTimedOut("no controller answered"))
                    if left_s > 0:
                        errors = await self._broker.create_missing(names, made_as, timeout_s=left_s)
                    self._note(names, errors)
                except Exception as error:
                    self._broker.report(error, f"topics {', '.join(names)} could not be created on first use")
                self._queue.popleft()
                for name in names:
                    del self._names[name]
        finally:
            self._is_running = False

    def _note(self, names: Iterable[str], errors: dict[str, ApiError]) -> None:
        for name in names:
            error = errors.get(name)
            if error is None:
                self._refusals.pop(name, None)
                continue
            reason = f"{error.kafka_name}: {error}"
            known = self._refusals.get(name)
            if known is None or known.reason != reason:
                log.warning("topic %s could not be created on first use: %s", name, reason)
            if len(self._refusals) >= NAMES_MAX:
                self._refusals.clear()
            self._refusals[name] = _Refusal(reason, self._broker.environment.clock.monotonic())
