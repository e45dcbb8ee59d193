"""Send ISR changes to the controller (AlterPartition), and periodically check for followers that lag.

Proposals made while a request is in flight are batched into the next one, up to ``PARTITIONS_MAX`` partitions: that is
what the controller can decide without delaying other requests. A request without a response is retried with
exponential backoff, as long as its proposals are still pending. The controller compares epochs, so repeating a request
is safe.

Rejected proposals: with INELIGIBLE_REPLICA the proposal is withdrawn at once and may be made again. With
INVALID_REQUEST it is withdrawn at the next check. The other errors mean that the controller has newer state, which this
broker has yet to replay from the metadata log. That state may be this very proposal, from an earlier request whose
response was lost. The proposal therefore stays pending until the metadata arrives, since a replica it adds to the ISR
may already be elected leader. It is sent again at each check, in case the controller's newer state was never committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    OperationNotAttempted,
    UnknownTopicId,
    UnknownTopicOrPartition,
    from_code,
)
from millbeck.kernel.ids import Uuid
from millbeck.replication.isr import IsrProposal
from millbeck.replication.partition import Partition
from millbeck.server.context import NodeContext
from millbeck.server.loop.tasks import TimeSlices
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)

RETRY_MS_MIN: Final = 50
RETRY_MS_MAX: Final = 1000
PARTITIONS_MAX: Final = 100
"""The maximum number of partitions per request."""

Send = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
"""Sends a request to the active controller; raises ApiError when there was no response."""

_WITHDRAWN: Final = (IneligibleReplica.code, OperationNotAttempted.code)
_WITHDRAWN_LATER: Final = (InvalidRequest.code,)
_OVERTAKEN: Final = (
    FencedLeaderEpoch.code,
    InvalidUpdateVersion.code,
    NewLeaderElected.code,
    UnknownTopicId.code,
    UnknownTopicOrPartition.code,
)

log = logging.getLogger(__name__)


class IsrChangeDriver:
    """The `AlterPartitionSender` of this node's partitions."""

    def __init__(
        self,
        context: NodeContext,
        send: Send,
        *,
        broker_epoch: Callable[[], int],
        lag_ms_max: Callable[[], int],
        checked: Callable[[], None] = lambda: None,
    ) -> None:
        """``checked`` is called after each check."""
        self._clock = context.environment.clock
        self._send = send
        self._node_id = context.node_id
        self._broker_epoch = broker_epoch
        self._partitions = context.topics.all_partitions
        self._lag_ms_max = lag_ms_max
        self._checked = checked
        self._spawn = context.spawn
        self._isolation = context.isolation
        self._proposed: dict[Partition, IsrProposal] = {}
        self._refused: dict[Partition, IsrProposal] = {}
        self._overtaken: dict[Partition, IsrProposal] = {}
        self._is_sending = False
        self.expansions = 0
        self.shrinks = 0
        self.failures = 0

    def start(self) -> None:
        """Start the periodic check for lagging followers; it runs until its task is cancelled."""
        self._spawn(self._check_repeatedly())

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self._proposed[partition] = proposal
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send_all())

    # Checking for followers that lag.

    async def _check_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(max(self._lag_ms_max(), 2) / 2000)
            await self.check()

    async def check(self) -> None:
        """Withdraw rejected proposals, resend those overtaken by newer state, and remove lagging followers."""
        refused, self._refused = self._refused, {}
        for partition, proposal in refused.items():
            self._isolation.run(("refused ISR", partition.name), partial(partition.on_alter_partition_error, proposal))
        overtaken, self._overtaken = self._overtaken, {}
        for partition, proposal in overtaken.items():
            if _is_wanted(partition, proposal):
                self.propose(partition, proposal)
        turns = TimeSlices(self._clock)
        for partition in list(self._partitions()):
            self._isolation.run(("check of followers", partition.name), partition.maybe_shrink_isr)
            await turns.yield_to_loop()
        self._isolation.run("check of followers", self._checked)

    # Sending.

    async def _send_all(self) -> None:
        retry_ms = RETRY_MS_MIN
        try:
            while wanted := self._take_wanted():
                try:
                    response = await self._send(self._request(wanted))
                    if response.error_code:
                        raise from_code(response.error_code)
                except Exception as error:
                    if not isinstance(error, ApiError):
                        self._isolation.failed("AlterPartition", error)
                    log.info("the controller did not accept %d ISR changes: %s", len(wanted), error)
                    self._requeue(wanted)
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = min(retry_ms * 2, RETRY_MS_MAX)
                    continue
                retry_ms = RETRY_MS_MIN if self._answered(wanted, response) else min(retry_ms * 2, RETRY_MS_MAX)
                # Batch what other partitions propose in this iteration of the event loop.
                await asyncio.sleep(0 if retry_ms == RETRY_MS_MIN else retry_ms / 1000)
        finally:
            self._is_sending = False

    def _take_wanted(self) -> dict[Partition, IsrProposal]:
        """Take the next batch of proposals that are still pending, in the order they were made."""
        wanted: dict[Partition, IsrProposal] = {}
        while self._proposed and len(wanted) < PARTITIONS_MAX:
            partition = next(iter(self._proposed))
            proposal = self._proposed.pop(partition)
            if _is_wanted(partition, proposal):
                wanted[partition] = proposal
        return wanted

    def _requeue(self, proposals: dict[Partition, IsrProposal]) -> None:
        for partition, proposal in proposals.items():
            self._proposed.setdefault(partition, proposal)

    def _request(self, wanted: dict[Partition, IsrProposal]) -> AlterPartitionRequest:
        topics: dict[Uuid, AlterPartitionTopic] = {}
        for partition, proposal in wanted.items():
            topic = topics.get(partition.topic_id)
            if topic is None:
                topic = topics[partition.topic_id] = AlterPartitionTopic(topic_id=partition.topic_id)
            topic.partitions.append(
                AlterPartitionPartition(
                    partition_index=partition.name.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[BrokerState(*member) for member in proposal.members],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._node_id, broker_epoch=self._broker_epoch(), topics=list(topics.values())
        )

    def _answered(self, wanted: dict[Partition, IsrProposal], response: AlterPartitionResponse) -> bool:
        """Apply the results to the partitions; False when some proposals have to be sent again."""
        results = {
            (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
        }
        unanswered = {}
        for partition, proposal in wanted.items():
            result = results.get((partition.topic_id, partition.name.partition))
            take = partial(self._take, partition, proposal)
            if result is None or not self._isolation.run(("ISR", partition.name), partial(take, result)):
                unanswered[partition] = proposal
        self._requeue(unanswered)
        return not unanswered

    def _take(self, partition: Partition, proposal: IsrProposal, result: AlterPartitionPartitionResult) -> bool:
        code = result.error_code
        if code == 0:
            partition.on_alter_partition_response(proposal, tuple(result.isr), result.partition_epoch)
            # The metadata may have arrived before this response: the proposal knows which ISR it was compared with.
            self.expansions += proposal.grows
            self.shrinks += not proposal.grows
            log.info("the ISR of %s is now %s", partition.name, result.isr)
            return True
        self.failures += 1
        log.info("the controller rejected %r of %s: %s", proposal, partition.name, type(from_code(code)).__name__)
        if code in _WITHDRAWN:
            partition.on_alter_partition_error(proposal)
        elif code in _WITHDRAWN_LATER:
            self._refused[partition] = proposal
        elif code in _OVERTAKEN:
            self._overtaken[partition] = proposal
        else:
            return False
        return True


def _is_wanted(partition: Partition, proposal: IsrProposal) -> bool:
    return partition.replicas is not None and partition.replicas.pending is proposal
