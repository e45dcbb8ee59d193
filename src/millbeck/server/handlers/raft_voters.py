"""An administrator changes who votes in the metadata quorum: AddRaftVoter and RemoveRaftVoter (KIP-853).

Behaviour
- The active controller does it, one change at a time; ALTER on the cluster is needed. A voter is a node and the
  directory it keeps the metadata log in.
- A new voter must have been following the log: one that lags, like a change that comes while another is under way, is
  REQUEST_TIMED_OUT, and can be tried again. DUPLICATE_VOTER and VOTER_NOT_FOUND say what they say. Where the voters are
  in the servers' files (``kraft.version`` 0) both are UNSUPPORTED_VERSION.
Versions
- AddRaftVoter 1: may be answered before the change is committed.
"""

from __future__ import annotations

from typing import Any

from millbeck.security.authorizer import Operation
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.handlers.raft import ask_quorum, error_reply


@handles(80, error_reply=error_reply(80))
async def handle_add_raft_voter(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.ALTER)


@handles(81, error_reply=error_reply(81))
async def handle_remove_raft_voter(call: Call, request: Any) -> Any:
    return await ask_quorum(call, request, Operation.ALTER)
