"""Fetch: answer with what is there, or wait for it.

Behaviour
- Whole batches from each offset on, below the high watermark (or the last stable offset for read_committed); the first
  partition with data always gets at least one batch, however large (KIP-74).
- Less than ``min_bytes`` (or ``max_bytes``, if that is less) there: the call is held until appends bring it, or
  ``max_wait_ms`` has passed. An error in any partition ends the wait at once.
- Sessions (KIP-227): see `fetch_sessions`. In one, only partitions with something new are listed in the reply.
- A follower copies everything up to the end of the log. It must come by the brokers' own listener and be allowed to
  act for the cluster; where it fetches from is its progress (`replication.in_sync`).
- A consumer may read from a follower (version 11), below what that knows to be committed, and is sent to a near one
  when ``replica.selector.class`` says so (KIP-392).
Versions
- 7: sessions. 12: a reader whose last epoch is not in our history gets the diverging epoch instead of records.
- 13: topic ids instead of names. 15: a follower's epoch. 16: who asks the wrong broker is told the leader (KIP-951).
"""

from __future__ import annotations

from typing import Any, Final

from millbeck.kernel.errors import ApiError
from millbeck.server.call import Call
from millbeck.server.dispatch import handles_frames
from millbeck.server.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchSession, Wanted
from millbeck.server.handlers.fetch.fetching import Fetching
from millbeck.wire.fast_fetch import FetchRequestView, decode_fetch_request
from millbeck.wire.messages.fetch import FetchResponse

SESSIONS_FROM: Final = 7
TOPIC_IDS_FROM: Final = 13


def error_reply(request: Any, version: int, error: ApiError) -> FetchResponse | None:
    return FetchResponse(error_code=error.code) if version >= SESSIONS_FROM else None


@handles_frames(1, error_reply=error_reply)
def handle_fetch(call: Call, frame: memoryview, position: int) -> None:
    request, _ = decode_fetch_request(call.version, frame, position)
    named = [
        Wanted(
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
    Fetching(call, request, session, named, is_full).start()


def _session(call: Call, request: FetchRequestView, named: list[Wanted]) -> tuple[FetchSession | None, bool]:
    sessions = call.broker.fetch_sessions
    now_ms = call.broker.deadlines.now_ms()
    uses_topic_ids = call.version >= TOPIC_IDS_FROM
    if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if request.session_id:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None, True
        session = sessions.open(len(named), uses_topic_ids, now_ms, is_privileged=request.replica_id >= 0)
        if session is not None:
            session.update(named, ())
        return session, True
    session = sessions.next(request.session_id, request.session_epoch, uses_topic_ids, now_ms)
    forgotten = [(key, index) for key, partitions in request.forgotten for index in partitions]
    session.update(named, forgotten)
    if not session.wanted:
        # The reply says that it is gone: id 0.
        sessions.close(session.session_id)
        return None, True
    return session, False
