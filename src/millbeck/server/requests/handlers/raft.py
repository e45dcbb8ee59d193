"""What the members of the metadata quorum say to each other, on the controllers' listeners alone: Vote,
BeginQuorumEpoch, EndQuorumEpoch, Fetch and FetchSnapshot of the metadata log, and UpdateRaftVoter.

Behaviour
- All of them need CLUSTER_ACTION. A request of another cluster is INCONSISTENT_CLUSTER_ID, one that is not about the
  metadata log INVALID_REQUEST; both stand at the top of the response.
- Fetch here is the quorum's replication: only the leader answers it with records, and may hold it for a while. It has
  nothing to do with the Fetch of the listeners for clients.
Versions
- Vote 1: directory ids; 2: pre-vote. Fetch 17: directory ids; 18: the follower's high watermark.
"""

from __future__ import annotations

from typing import Any, Final

from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import ErrorReply, Route, handles
from millbeck.wire.api_keys import APIS

FETCH: Final = 1


def error_reply(api_key: int) -> ErrorReply:
    """The message is loaded when there is an error to be told: a node that is alone has no use for it."""

    def reply(request: Any, version: int, error: ApiError) -> Any:
        response = APIS[api_key].response()
        response.error_code = error.code
        if hasattr(response, "error_message"):
            response.error_message = str(error) or None
        return response

    return reply


async def ask_quorum(call: Call, request: Any, operation: Operation) -> Any:
    """Put a request to this node's member of the quorum."""
    # Loaded with the first of them: it brings a dozen messages along.
    from millbeck.server.drivers import raft_wire

    if not call.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    ask = raft_wire.ask_of(request, call.broker.cluster_id)
    return raft_wire.response_of(request, await call.broker.quorum.ask(ask))


@handles(52, error_reply=error_reply(52))
async def handle_vote(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(53, error_reply=error_reply(53))
async def handle_begin_quorum_epoch(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(54, error_reply=error_reply(54))
async def handle_end_quorum_epoch(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(FETCH, error_reply=error_reply(FETCH))
async def handle_raft_fetch(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(59, error_reply=error_reply(59))
async def handle_fetch_snapshot(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.CLUSTER_ACTION)


@handles(82, error_reply=error_reply(82))
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
"""For the controllers' listeners."""
