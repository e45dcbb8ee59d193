"""Handle Fetch: answer with the available data, or wait for more.

Behaviour
- Whole batches from each offset on, up to the high watermark (or the last stable offset for read_committed); the first
  partition with data always returns at least one batch, however large (KIP-74).
- With less data than ``min_bytes`` (or ``max_bytes``, if that is less) the fetch is delayed until appends bring enough
  or ``max_wait_ms`` has passed. An error in any partition ends the wait at once.
- Sessions (KIP-227): see `sessions`. An incremental response lists only partitions with changes.
- A follower reads up to the end of the log. It must use the inter-broker listener and be allowed CLUSTER_ACTION; its
  fetch offset is its progress (`replication.isr`).
- A consumer may read from a follower (version 11), below the high watermark that the follower knows, and is redirected
  to a near replica if ``replica.selector.class`` chooses one (KIP-392).
Versions
- 7: sessions. 12: a reader whose last epoch diverges from this log gets the diverging epoch instead of records.
- 13: topic ids instead of names. 15: the follower's broker epoch. 16: a client that asks the wrong broker gets the
  current leader (KIP-951).
"""

from __future__ import annotations

from typing import Any, Final

from millbeck.kernel.errors import ApiError
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.fetch.delayed_fetch import DelayedFetch
from millbeck.server.fetch.sessions import FINAL_EPOCH, INITIAL_EPOCH, CachedPartition, FetchSession
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles_frames
from millbeck.wire.fast_fetch import FetchRequestView, decode_fetch_request
from millbeck.wire.messages.fetch import FetchResponse

SESSIONS_FROM: Final = 7
TOPIC_IDS_FROM: Final = 13


def error_reply(request: Any, version: int, error: ApiError) -> FetchResponse | None:
    return FetchResponse(error_code=error.code) if version >= SESSIONS_FROM else None


@handles_frames(
    1,
    needs=[
        Need(Operation.READ, ResourceType.TOPIC, when="the client is a consumer"),
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="the request is a follower's; on the inter-broker listener only",
            denied="TOPIC_AUTHORIZATION_FAILED in every partition",
        ),
    ],
    error_reply=error_reply,
)
def handle_fetch(call: Call, frame: memoryview, position: int) -> None:
    request, _ = decode_fetch_request(call.version, frame, position)
    named = [
        CachedPartition(
            key,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for key, partitions in request.topics
        for partition in partitions
    ]
    session, is_full = _session(call, request, named)
    DelayedFetch(call, request, session, named, is_full).start()


def _session(call: Call, request: FetchRequestView, named: list[CachedPartition]) -> tuple[FetchSession | None, bool]:
    sessions = call.broker.fetch_sessions
    now_ms = call.broker.deadlines.now_ms()
    uses_topic_ids = call.version >= TOPIC_IDS_FROM
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None, True
        # Whoever only says that it is a follower must not evict the sessions of others.
        is_privileged = request.replica_id >= 0 and call.is_cluster_action_allowed()
        session = sessions.open(len(named), uses_topic_ids, now_ms, is_privileged=is_privileged)
        if session is not None:
            session.update(named, ())
        return session, True
    session = sessions.next(request.session_id, request.session_epoch, uses_topic_ids, now_ms)
    forgotten = [(key, index) for key, partitions in request.forgotten for index in partitions]
    session.update(named, forgotten)
    if not session.wanted:
        # Session id 0 in the reply tells the client that the session is closed.
        sessions.close(session.session_id)
        return None, True
    return session, False
