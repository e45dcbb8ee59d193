"""A ShareFetch in progress: its acknowledgements, and the records it acquires from the session's partitions.

Both proceed concurrently. The response is sent when the acknowledgements are durable and records were acquired or the
wait time is over. Nothing is acquired before ``min_bytes`` are available. Partitions are tried in the session's order
until there are enough records; a partition that returned records moves to the end of that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import ApiError, KafkaStorageError
from millbeck.kernel.timer_wheel import Timer
from millbeck.server.replicas.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.server.share.acknowledgements import PendingAcknowledgements, check_may_read
from millbeck.server.share.partition_leader import (
    AcquiredBatches,
    AcquireParameters,
    SharePartitionLeader,
    SharePartitionLeaderState,
)
from millbeck.server.share.sessions import Place, ShareSession
from millbeck.storage.segment import ColdRead
from millbeck.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    ShareFetchableTopicResponse,
    ShareFetchPartitionResult,
    ShareFetchRequest,
    ShareFetchResponse,
)
from millbeck.wire.messages.shared import NodeEndpoint

if TYPE_CHECKING:
    from millbeck.server.network.call import Call

NO_LEADER: Final = -1
WARMINGS_MAX: Final = 8


class DelayedShareFetch:
    def __init__(
        self,
        call: Call,
        request: ShareFetchRequest,
        session: ShareSession,
        acknowledging: PendingAcknowledgements,
        *,
        is_strict: bool,
    ) -> None:
        self._call = call
        self._request = request
        self._session = session
        self._acknowledging = acknowledging
        self._is_strict = is_strict
        self._taken: dict[Place, AcquiredBatches] = {}
        self._errors: dict[Place, ApiError] = {}
        self._waits_on: list[SharePartitionLeader] = []
        self._timer: Timer | None = None
        self._warmings = 0
        self._is_looked_at = False
        """Whether acquiring records is finished."""
        self._is_late = False
        """Whether the wait time is over: respond with what is available."""
        self._is_over = False

    # Acquiring

    def start(self, *, wants_records: bool) -> None:
        self._call.hold()
        self._acknowledging.on_done = self._finish
        self._acknowledging.close()
        if not wants_records:
            self._is_looked_at = True
        elif not self._look(self._session.places):
            self._park()
        self._finish()

    def _look(self, places: Iterable[Place]) -> bool:
        """Acquire available records; True when there is a result, or when a thread is reading the log for one."""
        if not self._has_enough():
            return False
        for place in list(places):
            if self._record_count() >= self._request.max_records:
                break
            try:
                check_may_read(self._call, place)
                led = self._call.broker.shares.led(self._session.group_id, *place)
                if led.state is SharePartitionLeaderState.ENDED:
                    assert led.error is not None
                    raise led.error
                if led.state is SharePartitionLeaderState.ACTIVE:
                    self._take(place, led)
            except ColdRead as cold:
                self._warm(led, cold.job, cold.release)
                return True
            except ApiError as error:
                self._errors[place] = error
            except OSError as error:
                self._errors[place] = KafkaStorageError(str(error))
        if self._taken or self._errors or not self._session.places:
            self._is_looked_at = True
        return self._is_looked_at

    def _has_enough(self) -> bool:
        """Whether ``min_bytes`` are available, or a share partition is not loaded yet or has ended."""
        missing = self._request.min_bytes
        if missing <= 1 or self._is_late:
            return True
        for place in self._session.places:
            led = self._call.broker.shares.known(self._session.group_id, *place)
            if led is None or led.state is SharePartitionLeaderState.ENDED:
                return True
            missing -= led.readable_bytes(missing)
            if missing <= 0:
                return True
        return False

    def _take(self, place: Place, led: SharePartitionLeader) -> None:
        if place in self._taken:
            return
        request = self._request
        size_bytes = sum(len(each.records) for each in self._taken.values())
        if size_bytes >= request.max_bytes:
            return
        parameters = AcquireParameters(
            self._session.member_id,
            request.max_records - self._record_count(),
            request.max_bytes - size_bytes,
            request.batch_size,
            self._is_strict,
        )
        taken = led.take(parameters, nowait=self._warmings < WARMINGS_MAX)
        if taken is not None:
            self._taken[place] = taken

    def _record_count(self) -> int:
        return sum(each.record_count for each in self._taken.values())

    def _warm(self, led: SharePartitionLeader, job: Callable[[], object], release: Callable[[], None]) -> None:
        """Read the log on a thread; until then no other fetch acquires from this share partition."""
        led.is_reading = True
        self._warmings += 1
        self._call.broker.spawn(self._read(led, job, release))

    async def _read(self, led: SharePartitionLeader, job: Callable[[], object], release: Callable[[], None]) -> None:
        try:
            await self._call.broker.in_thread(job)
        except OSError as error:
            self._errors[led.key.topic_id, led.key.partition] = KafkaStorageError(str(error))
        finally:
            release()
            led.is_reading = False
        if not self._is_over:
            if not self._look(self._session.places):
                if self._is_late:
                    self._is_looked_at = True
                else:
                    self._park()
            self._finish()
        led.wake()

    # Waiting

    def _park(self) -> None:
        if self._call.connection.is_lost:
            self._is_over = True
            return
        shares = self._call.broker.shares
        for place in self._session.places:
            led = shares.known(self._session.group_id, *place)
            if led is not None:
                led.waiting[self] = None
                self._waits_on.append(led)
        if self._timer is None:
            self._timer = self._call.broker.deadlines.after(max(self._request.max_wait_ms, 0), self._time_is_up)
            self._call.connection.when_lost(self._abandon)

    def evaluate_again(self, led: SharePartitionLeader) -> None:
        if self._is_over or self._is_looked_at:
            return
        try:
            if self._look([(led.key.topic_id, led.key.partition)]):
                self._finish()
        except Exception as error:
            self._leave()
            self._call.fail_unexpectedly(error)

    def _time_is_up(self) -> None:
        self._is_late = True
        if self._request.min_bytes > 1 and not self._is_looked_at:
            # Some records may be available, though less than min_bytes.
            warmings = self._warmings
            try:
                self._look(self._session.places)
            except Exception as error:
                self._leave()
                self._call.fail_unexpectedly(error)
                return
            if self._warmings > warmings:
                return
        self._is_looked_at = True
        self._finish()

    def _abandon(self) -> None:
        self._is_over = True
        self._leave()

    def _leave(self) -> None:
        self._is_over = True
        for led in self._waits_on:
            led.waiting.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._call.connection.forget_when_lost(self._abandon)

    # Answering

    def _finish(self) -> None:
        if self._is_over or not self._is_looked_at or not self._acknowledging.is_done:
            return
        self._leave()
        response = self._response()
        quotas = self._call.broker.quotas
        if quotas is not None:
            sizes = (len(each.records or b"") for topic in response.responses for each in topic.partitions)
            response.throttle_time_ms = quotas.share_fetched(self._call, sum(sizes))
        self._call.reply(response)

    def _response(self) -> ShareFetchResponse:
        topics: dict[bytes, list[ShareFetchPartitionResult]] = {}
        leaders: list[int] = []
        places = dict.fromkeys([*self._session.places, *self._acknowledging.errors])
        counters = self._call.broker.shares.counters
        counters.fetches += 1
        for place in places:
            if place not in self._taken and place not in self._errors and place not in self._acknowledging.errors:
                continue
            result = self._result(place)
            if result.current_leader.leader_id != NO_LEADER:
                leaders.append(result.current_leader.leader_id)
            topics.setdefault(place[0], []).append(result)
        for place, taken in self._taken.items():
            self._session.served(place)
            counters.of_group(self._session.group_id).acquired_records += taken.record_count
        counters.failed_fetches += bool(self._errors)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=self._call.broker.shares.settings_of(self._session.group_id).lock_duration_ms,
            responses=[ShareFetchableTopicResponse(topic, results) for topic, results in topics.items()],
            node_endpoints=[
                NodeEndpoint(each.node_id, each.host, each.port, each.rack)
                for each in addresses_of(self._call, leaders)
            ],
        )

    def _result(self, place: Place) -> ShareFetchPartitionResult:
        result = ShareFetchPartitionResult(
            partition_index=place[1], current_leader=LeaderIdAndEpoch(NO_LEADER, NO_LEADER)
        )
        taken, error = self._taken.get(place), self._errors.get(place)
        settled = self._acknowledging.errors.get(place)
        if taken is not None:
            result.records = taken.records
            result.acquired_records = [AcquiredRecords(*each) for each in taken.acquired]
        elif error is not None:
            result.error_code, result.error_message = error.code, str(error) or None
        if settled is not None:
            result.acknowledge_error_code, result.acknowledge_error_message = settled.code, str(settled) or None
        if any(each is not None and each.code in ABOUT_LEADERS for each in (error, settled)):
            leader = leader_of(self._call.broker, *place)
            if leader is not None:
                result.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
        return result
