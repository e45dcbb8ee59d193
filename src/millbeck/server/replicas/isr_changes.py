"""Proposed changes of in-sync replicas on their way to the controller, and the periodic look for followers that lag.

All that is proposed while a request is out goes with the next one. A request that got no answer is sent again, later
and later, as long as what it proposes is still wanted. The controller compares epochs, so a repeated request does no
harm.

Of a refused proposal, one that names a replica the controller does not take (INELIGIBLE_REPLICA) is withdrawn at once
and may be made again. So is one that makes no sense to it (INVALID_REQUEST), at the next look. The other refusals mean
that the controller knows something newer, which is on its way to us in the metadata. It may be the very proposal, sent
before by a request whose answer was lost: until the metadata says so it stays in force, for who has joined can lead
already. At each look it is sent again, in case what the controller knew was never committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from millbeck.kernel.environment import Clock
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
from millbeck.replication.in_sync import IsrProposal
from millbeck.replication.partition import Partition
from millbeck.server.turns import Turns
from millbeck.wire.messages.alter_partition import (
    AlterPartitionPartition,
    AlterPartitionPartitionResult,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
)

RETRY_MS_MIN: Final = 50
RETRY_MS_MAX: Final = 1000

Send = Callable[[AlterPartitionRequest], Awaitable[AlterPartitionResponse]]
"""Carries a request to the active controller; raises ApiError when there was no answer."""

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
    """The `IsrChanges` of a node's partitions."""

    def __init__(
        self,
        clock: Clock,
        send: Send,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        partitions: Callable[[], Iterable[Partition]],
        lag_ms_max: Callable[[], int],
        looked: Callable[[], None] = lambda: None,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """``partitions`` are all of the node's, led here or not; ``looked`` is called after each look at them."""
        self._clock = clock
        self._send = send
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._partitions = partitions
        self._lag_ms_max = lag_ms_max
        self._looked = looked
        self._spawn = spawn
        self._proposed: dict[Partition, IsrProposal] = {}
        self._refused: dict[Partition, IsrProposal] = {}
        self._overtaken: dict[Partition, IsrProposal] = {}
        self._is_sending = False
        self.expansions = 0
        self.shrinks = 0
        self.failures = 0

    def start(self) -> None:
        """Look for followers that lag, from now on, until the task is cancelled."""
        self._spawn(self._look_repeatedly())

    def propose(self, partition: Partition, proposal: IsrProposal) -> None:
        self._proposed[partition] = proposal
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send_all())

    # Looking for followers that lag.

    async def _look_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(max(self._lag_ms_max(), 2) / 2000)
            await self.look()

    async def look(self) -> None:
        """Drop proposals that nothing can come of, make others again, and propose to leave out who lags."""
        refused, self._refused = self._refused, {}
        for partition, proposal in refused.items():
            partition.isr_refused(proposal)
        overtaken, self._overtaken = self._overtaken, {}
        for partition, proposal in overtaken.items():
            if _is_wanted(partition, proposal):
                self.propose(partition, proposal)
        turns = Turns(self._clock)
        for partition in list(self._partitions()):
            partition.check_followers()
            await turns.give_way()
        self._looked()

    # Sending.

    async def _send_all(self) -> None:
        retry_ms = RETRY_MS_MIN
        try:
            while wanted := self._take_wanted():
                try:
                    response = await self._send(self._request(wanted))
                    if response.error_code:
                        raise from_code(response.error_code)
                except ApiError as error:
                    log.info("the controller has not taken %d changes of replicas: %s", len(wanted), error)
                    self._again(wanted)
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = min(retry_ms * 2, RETRY_MS_MAX)
                    continue
                retry_ms = RETRY_MS_MIN if self._answered(wanted, response) else min(retry_ms * 2, RETRY_MS_MAX)
                # Whoever proposes meanwhile travels together.
                await asyncio.sleep(0 if retry_ms == RETRY_MS_MIN else retry_ms / 1000)
        finally:
            self._is_sending = False

    def _take_wanted(self) -> dict[Partition, IsrProposal]:
        """What is proposed and still in force."""
        proposed, self._proposed = self._proposed, {}
        return {partition: proposal for partition, proposal in proposed.items() if _is_wanted(partition, proposal)}

    def _again(self, proposals: dict[Partition, IsrProposal]) -> None:
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
        """Tell the partitions; False when some are to be asked for again."""
        results = {
            (topic.topic_id, result.partition_index): result for topic in response.topics for result in topic.partitions
        }
        unanswered = {}
        for partition, proposal in wanted.items():
            result = results.get((partition.topic_id, partition.name.partition))
            if result is None or not self._take(partition, proposal, result):
                unanswered[partition] = proposal
        self._again(unanswered)
        return not unanswered

    def _take(self, partition: Partition, proposal: IsrProposal, result: AlterPartitionPartitionResult) -> bool:
        code = result.error_code
        if code == 0:
            partition.isr_answered(proposal, tuple(result.isr), result.partition_epoch)
            # The metadata may have said it before this answer: the proposal knows what it was compared with.
            self.expansions += proposal.grows
            self.shrinks += not proposal.grows
            log.info("%s has the in-sync replicas %s now", partition.name, result.isr)
            return True
        self.failures += 1
        log.info("the controller refuses %r of %s: %s", proposal, partition.name, type(from_code(code)).__name__)
        if code in _WITHDRAWN:
            partition.isr_refused(proposal)
        elif code in _WITHDRAWN_LATER:
            self._refused[partition] = proposal
        elif code in _OVERTAKEN:
            self._overtaken[partition] = proposal
        else:
            return False
        return True


def _is_wanted(partition: Partition, proposal: IsrProposal) -> bool:
    return partition.replicas is not None and partition.replicas.pending is proposal
