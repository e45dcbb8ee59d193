"""UpdateRaftVoter: a voter tells where it listens and which versions it speaks."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, nested, string, struct, uint16, uuid


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(kind=Kind.REQUEST, api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    """Sent to the quorum's leader."""

    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32(doc="The epoch the client believes in; -1 is not checked.")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(of=Listener)
    k_raft_version_feature: KRaftVersionFeature = nested(of=KRaftVersionFeature)


@struct
class CurrentLeader:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


@message(kind=Kind.RESPONSE, api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    """The leader, as the receiver knows it."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    current_leader: CurrentLeader = nested(of=CurrentLeader, tag=0)
