"""Periodic tasks of the active controller: expire sessions, move leadership to preferred replicas, unclean elections.

The first task sets the options that finalized features depend on, which a new cluster does not have yet. This module
never reads a clock. The driver asks for the time of the next step (`next_ms`), and then calls `step` until no task is
due. Steps are requested several times per session timeout, which shows whether the controller was not running in
between. No heartbeat could arrive in that time, so all sessions are extended by it. A paused controller therefore does
not fence the whole cluster when it resumes, and a failed broker is still fenced after its session timeout plus the
pause.

A task that fails does not stop the others, and a broker that cannot be fenced does not stop the fencing of others. The
failure is counted, and the task is retried after five seconds (`ConfigRules.isolation`).
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
"""A periodic task: one of the constants below, or a broker id, for fencing that broker."""
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
        """The time at which `step` must be called next."""
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
        """Called when the driver submits a step; `step` is called later, after earlier decisions.

        Only the delay up to now counts as time in which the controller was not running. While `step` is queued,
        heartbeats arrive and count, so a failed broker must not get that time as well.
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
        """Called when the records of the last step could not be written completely: other tasks are then tried
        first."""
        self._rules.isolation.failed(("periodic task", self._doing), error)
        self._waiting_ms[self._doing] = now_ms + RETRY_MS

    def _attempt(self, task: Task, steps: Steps[Result[bool]], now_ms: int) -> Steps[Result[bool] | None]:
        """Run a task; returns its decision, or None if it failed and is retried later."""
        self._doing = task
        result = yield from self._rules.isolation.run_steps(("periodic task", task), steps)
        if result is None:
            self._waiting_ms[task] = now_ms + RETRY_MS
        return result

    def _waiting(self, now_ms: int) -> dict[Task, int]:
        """The failed tasks with the time of their next attempt."""
        for task in [task for task, until_ms in self._waiting_ms.items() if until_ms <= now_ms]:
            del self._waiting_ms[task]
        return self._waiting_ms

    # The tasks.

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
