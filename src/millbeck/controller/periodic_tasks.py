"""Periodic tasks of the active controller: expire sessions, move leadership to preferred replicas, unclean elections.

The first task sets the options that finalized features depend on, which a new cluster does not have yet.
It never reads a clock. The driver asks when to come back (`next_ms`), comes, and carries out one duty after another
(`step`) until none is due. It is asked to come several times within a session, so that it is known when it was not
running: then no heartbeat could arrive, and sessions are extended by that time. A paused controller does not fence the
whole cluster when it wakes, and a broker that is gone is still noticed after its session and the pause.

A duty that fails does not stop the others, nor a broker that can not be fenced the other brokers' sessions: it is left
alone for five seconds, and counted (`ConfigRules.isolation`).
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.elections import balance_leaders, elect_unclean_leaders
from millbeck.controller.eligible_leaders import records_for_tracking
from millbeck.controller.options import ControllerOptions
from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import NotController
from millbeck.metadata.image import BrokerRegistration, MetadataImage

TICKS_PER_SESSION: Final = 4
RETRY_MS: Final = 5000

Task = str | int
"""One of those below, or to fence the broker with that id."""
BEGIN: Final = "begin"
BALANCE: Final = "balance leaders"
UNCLEAN: Final = "unclean elections"


class PeriodicTasks:
    """The tasks from `activate` to `deactivate`."""

    def __init__(self, options: ControllerOptions, rules: ConfigRules, brokers: BrokerLifecycle) -> None:
        self._options = options
        self._rules = rules
        self._brokers = brokers
        self._expected_ms: int | None = None
        self._has_begun = False
        self._balance_ms = 0
        self._unclean_ms = 0
        self._doing: Task = BEGIN
        self._waiting_ms: dict[Task, int] = {}

    def activate(self, now_ms: int) -> None:
        self._expected_ms = None
        self._has_begun = False
        self._waiting_ms = {}
        self._balance_ms = now_ms + self._options.rebalance_interval_ms
        self._unclean_ms = now_ms + self._options.unclean_election_interval_ms

    def next_ms(self, image: MetadataImage, now_ms: int) -> int:
        """When `step` is to be called."""
        tracker = self._brokers.tracker
        if tracker is None:
            raise NotController
        waiting = self._waiting(now_ms)
        tick_ms = now_ms + tracker.session_timeout_ms // TICKS_PER_SESSION
        next_ms = min(tick_ms, tracker.next_expiry_ms(image, now_ms, waiting), *waiting.values())
        if self._options.rebalances_leaders and BALANCE not in waiting:
            next_ms = min(next_ms, self._balance_ms)
        if UNCLEAN not in waiting:
            next_ms = min(next_ms, self._unclean_ms)
        if not self._has_begun:
            next_ms = now_ms
        self._expected_ms = max(next_ms, now_ms)
        return self._expected_ms

    def begun(self, now_ms: int) -> None:
        """The driver has submitted a step; `step` is called later, in order with other decisions.

        Only what it is late by now is time in which the controller was not running: while `step` waits for its turn
        heartbeats arrive and count, and a broker that is gone must not be given that time as well.
        """
        tracker, expected_ms = self._brokers.tracker, self._expected_ms
        self._expected_ms = None
        if tracker is None or expected_ms is None:
            return
        if now_ms - expected_ms > tracker.session_timeout_ms // TICKS_PER_SESSION:
            tracker.prolong(now_ms - expected_ms, now_ms)

    def step(self, image: MetadataImage, now_ms: int) -> Steps[Result[bool]]:
        """Perform one task that is due; True if more may be due."""
        tracker = self._brokers.tracker
        if tracker is None:
            raise NotController
        self.begun(now_ms)
        if not self._has_begun:
            self._has_begun = True
            result = yield from self._attempt(BEGIN, self._begin(image), now_ms)
            if result is not None:
                return result
        waiting = self._waiting(now_ms)
        while (broker := tracker.find_stale_broker(image, now_ms, waiting)) is not None:
            result = yield from self._attempt(broker.broker_id, self._fence(image, broker, now_ms), now_ms)
            if result is not None:
                return result
        if self._options.rebalances_leaders and now_ms >= self._balance_ms and BALANCE not in waiting:
            result = yield from self._attempt(BALANCE, self._balance(image, now_ms), now_ms)
            if result is not None:
                return result
        if now_ms >= self._unclean_ms and UNCLEAN not in waiting:
            result = yield from self._attempt(UNCLEAN, self._elect_unclean(image, now_ms), now_ms)
            if result is not None:
                return result
        return Result(response=False)

    def not_written(self, error: Exception, now_ms: int) -> None:
        """The records of the last step could not be written completely: other tasks are tried first."""
        self._rules.isolation.failed(("periodic task", self._doing), error)
        self._waiting_ms[self._doing] = now_ms + RETRY_MS

    def _attempt(self, task: Task, steps: Steps[Result[bool]], now_ms: int) -> Steps[Result[bool] | None]:
        """The decision of a task; None if it failed, and then it is retried later."""
        self._doing = task
        result = yield from self._rules.isolation.run_steps(("periodic task", task), steps)
        if result is None:
            self._waiting_ms[task] = now_ms + RETRY_MS
        return result

    def _waiting(self, now_ms: int) -> dict[Task, int]:
        """The failed tasks that are not retried before a time."""
        for task in [task for task, until_ms in self._waiting_ms.items() if until_ms <= now_ms]:
            del self._waiting_ms[task]
        return self._waiting_ms

    # Each thing by itself.

    def _begin(self, image: MetadataImage) -> Steps[Result[bool]]:
        tracks = image.features.tracks_eligible_leaders
        yield
        return Result(response=True, records=records_for_tracking(image, self._rules) if tracks else [])

    def _fence(self, image: MetadataImage, broker: BrokerRegistration, now_ms: int) -> Steps[Result[bool]]:
        fenced = yield from self._brokers.fence_stale(image, broker, now_ms)
        return Result(response=True, records=fenced.records, is_atomic=False)

    def _balance(self, image: MetadataImage, now_ms: int) -> Steps[Result[bool]]:
        balanced = yield from balance_leaders(image, self._rules)
        self._balance_ms = now_ms if balanced.response else now_ms + self._options.rebalance_interval_ms
        return Result(response=True, records=balanced.records, is_atomic=False)

    def _elect_unclean(self, image: MetadataImage, now_ms: int) -> Steps[Result[bool]]:
        elected = yield from elect_unclean_leaders(image, self._rules)
        self._unclean_ms = now_ms if elected.response else now_ms + self._options.unclean_election_interval_ms
        return Result(response=True, records=elected.records, is_atomic=False)
