"""What the active controller does by itself: expire sessions, give leadership back, elect where that is now allowed.

The first thing it does is to see to the settings that finalized features rely on, which a new cluster has not got yet.
It never reads a clock. The driver asks when to come back (`next_ms`), comes, and carries out one duty after another
(`step`) until none is due. It is asked to come several times within a session, so that it is known when it was not
running: then nobody could be heard, and sessions are prolonged by that time. A paused controller does not fence the
whole cluster when it wakes, and a broker that is gone is still noticed after its session and the pause.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.elections import balance_leaders, elect_unclean_leaders
from millbeck.controller.eligible_leaders import records_for_tracking
from millbeck.controller.options import ControllerOptions
from millbeck.controller.result import Result
from millbeck.kernel.errors import NotController
from millbeck.metadata.image import MetadataImage

TICKS_PER_SESSION: Final = 4


class Duties:
    """Between `activate` and `deactivate`."""

    def __init__(self, options: ControllerOptions, rules: ConfigRules, brokers: BrokerLifecycle) -> None:
        self._options = options
        self._rules = rules
        self._brokers = brokers
        self._expected_ms: int | None = None
        self._has_begun = False
        self._balance_ms = 0
        self._unclean_ms = 0

    def activate(self, now_ms: int) -> None:
        self._expected_ms = None
        self._has_begun = False
        self._balance_ms = now_ms + self._options.rebalance_interval_ms
        self._unclean_ms = now_ms + self._options.unclean_election_interval_ms

    def next_ms(self, image: MetadataImage, now_ms: int) -> int:
        """When `step` is to be called."""
        tracker = self._brokers.tracker
        if tracker is None:
            raise NotController
        tick_ms = now_ms + tracker.session_timeout_ms // TICKS_PER_SESSION
        next_ms = min(tick_ms, tracker.next_expiry_ms(image, now_ms), self._unclean_ms)
        if self._options.rebalances_leaders:
            next_ms = min(next_ms, self._balance_ms)
        if not self._has_begun:
            next_ms = now_ms
        self._expected_ms = max(next_ms, now_ms)
        return self._expected_ms

    def step(self, image: MetadataImage, now_ms: int) -> Result[bool]:
        """Do one thing that is due; True when there may be more that is."""
        tracker = self._brokers.tracker
        if tracker is None:
            raise NotController
        expected_ms, self._expected_ms = self._expected_ms, None
        if expected_ms is not None and now_ms - expected_ms > tracker.session_timeout_ms // TICKS_PER_SESSION:
            tracker.prolong(now_ms - expected_ms, now_ms)
        if not self._has_begun:
            self._has_begun = True
            tracks = image.features.tracks_eligible_leaders
            return Result(response=True, records=records_for_tracking(image, self._rules) if tracks else [])
        fenced = self._brokers.fence_one_stale(image, now_ms)
        if fenced.response is not None:
            return Result(response=True, records=fenced.records, is_atomic=False)
        if self._options.rebalances_leaders and now_ms >= self._balance_ms:
            balanced = balance_leaders(image, self._rules)
            self._balance_ms = now_ms if balanced.response else now_ms + self._options.rebalance_interval_ms
            return Result(response=True, records=balanced.records, is_atomic=False)
        if now_ms >= self._unclean_ms:
            elected = elect_unclean_leaders(image, self._rules)
            self._unclean_ms = now_ms if elected.response else now_ms + self._options.unclean_election_interval_ms
            return Result(response=True, records=elected.records, is_atomic=False)
        return Result(response=False)
