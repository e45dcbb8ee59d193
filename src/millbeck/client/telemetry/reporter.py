"""Pushes a client's metrics to brokers that ask for them (KIP-714).

    subscribe ──metrics asked for──▶ wait ──push interval──▶ push ──accepted──▶ wait
        ▲                                                      │
        └── unknown subscription, codec refused, too large ◀───┘

Brokers that collect client metrics offer GetTelemetrySubscriptions; the subscription says which metrics are wanted, how
often, and in which codecs. The first push waits for half to one and a half intervals, so that clients started together
do not push together. `terminate` pushes once more when the client closes. An error that cannot go away ends it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from millbeck.client.retry import Deadline
from millbeck.client.telemetry.otlp import Deltas, metrics_data, selected
from millbeck.kernel.errors import (
    ApiError,
    InvalidRecord,
    InvalidRequest,
    TelemetryTooLarge,
    UnknownSubscriptionId,
    UnsupportedCompressionType,
    UnsupportedVersion,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID, Uuid, uuid_text
from millbeck.records.compression import Codec, compress
from millbeck.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)

if TYPE_CHECKING:
    from millbeck.client.cluster import Cluster

log = logging.getLogger(__name__)

_DEFAULT_INTERVAL_S: Final = 300.0
_TERMINATING_SECONDS_MAX: Final = 1.0
_NS: Final = 1_000_000_000


class TelemetryReporter:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._loop = asyncio.get_running_loop()
        self.client_instance_id: asyncio.Future[Uuid] = self._loop.create_future()
        """The id that the broker has given this client; an error if it will get none."""
        self._subscription: GetTelemetrySubscriptionsResponse | None = None
        self._deltas = Deltas()
        self._started_ns = self._pushed_ns = cluster.environment.clock.wall_ns()

    async def run(self) -> None:
        """Push until an error that cannot go away."""
        while True:
            try:
                await self._follow_subscription()
            except (UnknownSubscriptionId, UnsupportedCompressionType):
                continue
            except (InvalidRequest, InvalidRecord, UnsupportedVersion) as error:
                log.warning("metrics are no longer pushed to brokers: %s", error)
                self._subscription = None
                if not self.client_instance_id.done():
                    self.client_instance_id.set_exception(error)
                    self.client_instance_id.exception()
                return
            except ApiError as error:
                log.debug("metrics could not be pushed: %s", error)
                subscription = self._subscription
                interval_s = _DEFAULT_INTERVAL_S if subscription is None else subscription.push_interval_ms / 1000
                if error.retriable and not isinstance(error, TelemetryTooLarge):
                    interval_s = min(interval_s, self._cluster.config.retry_backoff_max_ms / 1000)
                await asyncio.sleep(interval_s)

    async def _follow_subscription(self) -> None:
        """Ask what is wanted, and push that as long as the subscription stays the same."""
        self._subscription = subscription = await self._ask()
        if not self.client_instance_id.done():
            self.client_instance_id.set_result(subscription.client_instance_id)
        interval_s = subscription.push_interval_ms / 1000
        if not subscription.requested_metrics:
            await asyncio.sleep(interval_s)
            return
        log.debug("metrics are pushed every %.1f s: %s", interval_s, subscription.requested_metrics)
        await asyncio.sleep(interval_s * (0.5 + self._cluster.environment.randomness.below(1000) / 1000))
        while True:
            await self._push(subscription, is_terminating=False)
            await asyncio.sleep(interval_s)

    async def _ask(self) -> GetTelemetrySubscriptionsResponse:
        known = self.client_instance_id
        current = known.result() if known.done() else ZERO_UUID
        response = await self._cluster.request(
            GetTelemetrySubscriptionsRequest(client_instance_id=current),
            GetTelemetrySubscriptionsResponse,
            deadline=Deadline(self._cluster.config.request_timeout_ms / 1000),
        )
        if response.error_code:
            raise from_code(response.error_code)
        return response

    async def _push(self, subscription: GetTelemetrySubscriptionsResponse, *, is_terminating: bool) -> None:
        cluster = self._cluster
        now_ns = cluster.environment.clock.wall_ns()
        points = selected(cluster.metrics.read(), subscription.requested_metrics)
        is_delta = subscription.delta_temporality
        data = metrics_data(
            self._deltas.of(points) if is_delta else points,
            cluster.labels(),
            is_delta=is_delta,
            start_ns=self._pushed_ns if is_delta else self._started_ns,
            now_ns=now_ns,
        )
        self._pushed_ns = now_ns
        codec = _codec(subscription.accepted_compression_types)
        payload = data if codec is Codec.NONE else compress(codec, data)
        if len(payload) > subscription.telemetry_max_bytes > 0:
            raise TelemetryTooLarge(
                f"{len(payload)} bytes of metrics are more than telemetry.max.bytes of the brokers, "
                f"{subscription.telemetry_max_bytes}: let the subscription name fewer metrics"
            )
        response = await cluster.request(
            PushTelemetryRequest(
                client_instance_id=subscription.client_instance_id,
                subscription_id=subscription.subscription_id,
                terminating=is_terminating,
                compression_type=codec,
                metrics=payload,
            ),
            PushTelemetryResponse,
            deadline=Deadline(cluster.config.request_timeout_ms / 1000),
        )
        if response.error_code:
            raise from_code(response.error_code)

    async def terminate(self) -> None:
        """Push for the last time, for at most a second."""
        subscription = self._subscription
        if subscription is None or not subscription.requested_metrics:
            return
        try:
            async with asyncio.timeout(_TERMINATING_SECONDS_MAX):
                await self._push(subscription, is_terminating=True)
        except (ApiError, TimeoutError) as error:
            log.debug("the last metrics of client %s were not pushed: %s", self.name, error)

    @property
    def name(self) -> str:
        known = self.client_instance_id
        return uuid_text(known.result()) if known.done() and not known.exception() else self._cluster.config.client_id


def _codec(accepted: list[int]) -> Codec:
    """The first codec that both sides have."""
    return next((Codec(number) for number in accepted if number in set(Codec)), Codec.NONE)
