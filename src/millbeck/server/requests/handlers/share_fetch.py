"""ShareFetch and ShareAcknowledge: records for members of share groups, and their acknowledgements (KIP-932).

Behaviour
- One share session per member and broker: epoch 0 opens it (without acknowledgements), every further request carries
  the next epoch, and -1 closes it: acknowledgements are processed, all other acquired records are released, and nothing
  is fetched.
- A fetch without available records waits up to ``max_wait_ms`` behind earlier waiting fetches; later requests on its
  connection wait until it is answered.
- A lost connection closes the session.
- With share.version 0 both are UNSUPPORTED_VERSION.
Versions
- ShareFetch 2: the acquire mode (1 = record limit: never more than ``max_records``), and renew acknowledgements; a
  request with these must not fetch records. ShareAcknowledge 2: renew acknowledgements.
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
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.replicas.leader_hints import ABOUT_LEADERS, addresses_of, leader_of
from millbeck.server.share.acknowledgements import PendingAcknowledgements
from millbeck.server.share.delayed_share_fetch import DelayedShareFetch
from millbeck.server.share.sessions import FINAL_EPOCH, INITIAL_EPOCH, Place, ShareSession
from millbeck.wire.messages.share_fetch import (
    LeaderIdAndEpoch,
    ShareAcknowledgePartitionResult,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
    ShareFetchRequest,
)
from millbeck.wire.messages.shared import NodeEndpoint

RECORD_LIMIT_MODE: Final = 1
RENEWAL_VERSION: Final = 2
NO_LEADER: Final = -1


def check_share_groups_are_on(call: Call) -> None:
    """Raise UNSUPPORTED_VERSION while share.version is 0."""
    if not call.broker.image.features.level(SHARE_VERSION):
        raise UnsupportedVersion("share groups are not enabled: share.version is 0")


def _check(call: Call, request: ShareFetchRequest | ShareAcknowledgeRequest) -> tuple[str, str]:
    check_share_groups_are_on(call)
    if not request.group_id:
        raise InvalidRequest("group id must be set")
    if not request.member_id:
        raise InvalidRequest("member id must be set")
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    return request.group_id, request.member_id


@handles(78, needs=[Need(Operation.READ, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)])
def handle_share_fetch(call: Call, request: ShareFetchRequest) -> None:
    group_id, member_id = _check(call, request)
    epoch = request.share_session_epoch
    says_something = any(each.acknowledgement_batches for topic in request.topics for each in topic.partitions)
    if epoch == INITIAL_EPOCH and says_something:
        raise InvalidRequest("the first request of a share session must not contain acknowledgements")
    if request.is_renew_ack and (request.max_bytes or request.max_records or request.max_wait_ms or request.min_bytes):
        raise InvalidRequest("a request with renew acknowledgements must not fetch records")
    shares = call.broker.shares
    session = shares.session(group_id, member_id, epoch, call.connection)
    if epoch != FINAL_EPOCH:
        session.add((topic.topic_id, each.partition_index) for topic in request.topics for each in topic.partitions)
        session.forget((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions)
    acknowledging = PendingAcknowledgements(call, group_id, member_id)
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
    fetching = DelayedShareFetch(
        call, request, session, acknowledging, is_strict=request.share_acquire_mode == RECORD_LIMIT_MODE
    )
    fetching.start(wants_records=not is_last and not request.is_renew_ack and request.max_records > 0)


@handles(79, needs=[Need(Operation.READ, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)])
def handle_share_acknowledge(call: Call, request: ShareAcknowledgeRequest) -> None:
    group_id, member_id = _check(call, request)
    epoch = request.share_session_epoch
    if epoch == INITIAL_EPOCH:
        raise InvalidShareSessionEpoch("a share session must be opened by a ShareFetch request")
    shares = call.broker.shares
    session = shares.session(group_id, member_id, epoch, call.connection)
    shares.counters.acknowledge_requests += 1
    call.hold()
    acknowledging = PendingAcknowledgements(call, group_id, member_id)
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
