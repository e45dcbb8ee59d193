"""AddRaftVoter and RemoveRaftVoter: change the voters of the metadata quorum (KIP-853).

Behaviour
- The active controller makes one change at a time; ALTER on the cluster is required. A voter is a node id with the id
  of the directory that holds its metadata log.
- A new voter must have caught up as an observer: one that lags is REQUEST_TIMED_OUT and can be retried, and so is a
  change while another one is pending. Existing and missing voters are DUPLICATE_VOTER and VOTER_NOT_FOUND. With static
  voters (``kraft.version`` 0) both requests are UNSUPPORTED_VERSION.
Versions
- AddRaftVoter 1: may be answered before the change is committed.
"""

from __future__ import annotations

from typing import Any

from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.audited import audited
from millbeck.server.requests.handlers.raft import ask_quorum, error_reply


@handles(80, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=error_reply(80))
async def handle_add_raft_voter(call: Call, request: Any) -> Any:
    response = await ask_quorum(call, request, Operation.ALTER)
    if not response.error_code:
        audited(call, "voter", str(request.voter_id), after=[f"{each.host}:{each.port}" for each in request.listeners])
    return response


@handles(81, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=error_reply(81))
async def handle_remove_raft_voter(call: Call, request: Any) -> Any:
    response = await ask_quorum(call, request, Operation.ALTER)
    if not response.error_code:
        audited(call, "voter", str(request.voter_id), before="a voter")
    return response
