"""Requests between members of the metadata quorum, on controller listeners only: Vote, BeginQuorumEpoch,
EndQuorumEpoch, Fetch and FetchSnapshot of the metadata log, and UpdateRaftVoter.

Behaviour
- All of them require CLUSTER_ACTION. A request with another cluster id is INCONSISTENT_CLUSTER_ID, one for another
  partition than the metadata log's INVALID_REQUEST; both are top-level errors.
- Fetch here is the quorum's replication: only the leader answers it with records, and may delay the response. It is
  unrelated to Fetch on client listeners.
Versions
- Vote 1: directory ids; 2: pre-vote. Fetch 17: directory ids; 18: the follower's high watermark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import ErrorReply, Need, Route, handles
from millbeck.wire.api_keys import APIS
from millbeck.wire.schema import schema_of

FETCH: Final = 1
ENDPOINTS_FROM: Final[Mapping[int | None, int]] = {FETCH: 16, 52: 1, 53: 1, 54: 1, 59: 1}
"""The first version of each response that names the leader's endpoints."""


def error_reply(api_key: int) -> ErrorReply:
    """The error reply of an API; imports the message only on an error, as a single-node cluster never needs it."""

    def reply(request: Any, version: int, error: ApiError) -> Any:
        response = APIS[api_key].response()
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = str(error) or None
        return response

    return reply


async def ask_quorum(call: Call, request: Any, operation: Operation) -> Any:
    """Pass a request to this node's member of the quorum."""
    # Imported on the first request: it brings a dozen message modules along.
    from millbeck.server.metadata import raft_messages

    if not call.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    ask = raft_messages.ask_of(request, call.broker.cluster_id)
    answer = raft_messages.to_wire_response(request, await call.broker.quorum.ask(ask))
    if call.version < ENDPOINTS_FROM.get(schema_of(type(answer)).api_key, 0):
        answer.node_endpoints = []
    return answer


@handles(52, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(52))
async def handle_vote(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(53, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(53))
async def handle_begin_quorum_epoch(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(54, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(54))
async def handle_end_quorum_epoch(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(FETCH, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(FETCH))
async def handle_raft_fetch(call: Call, request: Any) -> Any:
    answer = await ask_quorum(call, request, Operation.CLUSTER_ACTION)
    call.connection.is_node = True
    return answer


@handles(59, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(59))
async def handle_fetch_snapshot(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(82, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)], error_reply=error_reply(82))
async def handle_update_raft_voter(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


RAFT_ROUTES: Final[tuple[Route, ...]] = (
    handle_vote,
    handle_begin_quorum_epoch,
    handle_end_quorum_epoch,
    handle_raft_fetch,
    handle_fetch_snapshot,
    handle_update_raft_voter,
)
"""The raft APIs of controller listeners."""
