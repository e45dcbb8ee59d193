"""ShareFetch and ShareAcknowledge: records for the members of share groups, and what they say of them (KIP-932).

Behaviour
- A session per member and broker: epoch 0 begins one (and carries no acknowledgements), every further request carries
  the next epoch, -1 ends it: what the member says is taken, everything else it holds is released, nothing is fetched.
- A fetch without anything to be had waits for ``max_wait_ms``, in line with the others, and holds its connection.
- When the connection is lost, so is the session.
- With share.version 0 all of this is UNSUPPORTED_VERSION.
Versions
- ShareFetch 2: an acquire mode (1: never more than ``max_records``); renewals, which fetch nothing. ShareAcknowledge 2:
  renewals.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import (
    ApiError,
    GroupAuthorizationFailed,
    InvalidRequest,
    InvalidShareSessionEpoch,
    UnsupportedVersion,
)
from millbeck.metadata.features import SHARE_VERSION
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.server.share.acknowledging import Acknowledging
from millbeck.server.share.fetching import ShareFetching
from millbeck.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession
from millbeck.wire.messages.share_acknowledge import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from millbeck.wire.messages.share_fetch import ShareFetchRequest

RECORD_LIMIT_MODE: Final = 1
RENEWAL_VERSION: Final = 2
NO_LEADER: Final = -1


def check_share_groups_are_on(call: Call) -> None:
    """Raises UNSUPPORTED_VERSION while share.version is 0."""
    if not call.broker.image.features.level(SHARE_VERSION):
        raise UnsupportedVersion("share groups are off: share.version is 0")


def _check(call: Call, request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    check_share_groups_are_on(call)
    if not request.group_id:
        raise InvalidRequest("a group must be named")
    if not request.member_id:
        raise InvalidRequest("a member must be named")
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    return request.group_id, request.member_id


@handles(78)
def handle_share_fetch(call: Call, request: ShareFetchRequest) -> None:
    group_id, member_id = _check(call, request)
    epoch = request.share_session_epoch
    says_something = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    if epoch == INITIAL_EPOCH and says_something:
        raise InvalidRequest("a session does not begin with acknowledgements")
    if request.is_renew_ack and (request.max_bytes or request.max_records or request.max_wait_ms or request.min_bytes):
        raise InvalidRequest("a renewal fetches nothing")
    shares = call.broker.shares
    session = shares.session(group_id, member_id, epoch, call.connection)
    if epoch != FINAL_EPOCH:
        session.add((topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions)
        session.forget((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions)
    acknowledging = Acknowledging(call, group_id, member_id)
    for topic in request.topics:
        for each in topic.partitions:
            if each.acknowledgement_batches:
                acknowledging.ask(
                    (topic.topic_id, each.partition_index),
                    each.acknowledgement_batches,
                    may_renew=request.is_renew_ack,
                )
    is_last = epoch == FINAL_EPOCH
    if is_last:
        shares.close_session(session)
    fetching = ShareFetching(
        call, request, session, acknowledging, is_strict=request.share_acquire_mode == RECORD_LIMIT_MODE
    )
    fetching.start(wants_records=not is_last and not request.is_renew_ack and request.max_records > 0)


@handles(79)
def handle_share_acknowledge(call: Call, request: ShareAcknowledgeRequest) -> None:
    group_id, member_id = _check(call, request)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise InvalidShareSessionEpoch("a session begins with a fetch")
    shares = call.broker.shares
    session = shares.session(group_id, member_id, epoch, call.connection)
    shares.counters.acknowledge_requests += 1
    call.hold()
    acknowledging = Acknowledging(call, group_id, member_id)
    for topic in request.topics:
        for each in topic.partitions:
            acknowledging.ask(
                (topic.topic_id, each.partition_index), each.acknowledgement_batches, may_renew=request.is_renew_ack
            )
    if epoch == FINAL_EPOCH:
        shares.close_session(session)
    acknowledging.on_done = lambda: call.reply(_acknowledged(call, session, acknowledging.errors))
    acknowledging.close()


def _acknowledged(
    call: Call, session: ShareSession, outcomes: dict[Place, ApiError | None]
) -> ShareAcknowledgeResponse:
    topics: dict[bytes, list[ShareAcknowledgePartitionResult]] = {}
    leaders = []
    for place, error in outcomes.items():
        result = ShareAcknowledgePartitionResult(
            partition_index=place[1], current_leader=LeaderIdAndEpoch(NO_LEADER, NO_LEADER)
        )
        if error is not None:
            result.error_code, result.error_message = error.code, str(error) or None
            leader = leader_of(call.broker, *place) if error.code in ABOUT_LEADERS else None
            if leader is not None:
                result.current_leader = LeaderIdAndEpoch(leader.leader_id, leader.leader_epoch)
                leaders.append(leader.leader_id)
        topics.setdefault(place[0], []).append(result)
    response = ShareAcknowledgeResponse(
        responses=[ShareAcknowledgeTopicResponse(topic, results) for topic, results in topics.items()],
        node_endpoints=[
            NodeEndpoint(each.node_id, each.host, each.port, each.rack) for each in addresses_of(call, leaders)
        ],
    )
    if call.version >= RENEWAL_VERSION:
        response.acquisition_lock_timeout_ms = call.broker.shares.settings_of(session.group_id).lock_duration_ms
    return response
