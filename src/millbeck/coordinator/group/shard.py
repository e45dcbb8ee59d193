"""The shard of one ``__consumer_offsets`` partition: the groups whose ids hash to it, and their offsets.

Each public method is one operation for `ShardRunner`: those that return a `Result` are writes, those that take ``at``
are reads of committed state. Expected errors are raised as `ApiError`, except where the response has more fields than
an error code (JoinGroup, SyncGroup): those complete the reply callback with a response.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from millbeck.coordinator.config import GroupShardOptions
from millbeck.coordinator.group import listing, records
from millbeck.coordinator.group.background import BackgroundExecutor
from millbeck.coordinator.group.classic import membership, sync
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.join import Client, JoinGroupHandler
from millbeck.coordinator.group.classic.rebalance import NOTHING, GroupResult, Rebalancer
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.consumer import classic_members, offset_rules
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.group import ConsumerGroup, ConsumerGroupState
from millbeck.coordinator.group.consumer.groups import ConsumerGroups
from millbeck.coordinator.group.consumer.heartbeat import HeartbeatResult, Sender
from millbeck.coordinator.group.offsets import commit, fetch, removal, transactional
from millbeck.coordinator.group.offsets.store import LATEST, OffsetStore
from millbeck.coordinator.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from millbeck.coordinator.group.share import groups as share_groups
from millbeck.coordinator.group.share.groups import BuildShareGroups, ShareGroups, StartOffset, StateInitialization
from millbeck.coordinator.group.share.records import SHARE_KEYS
from millbeck.coordinator.group.statistics import CommittedOffset, Counters, ShardStatistics
from millbeck.coordinator.group.streams import offset_rules as streams_offset_rules
from millbeck.coordinator.group.streams.draft import group_tombstones
from millbeck.coordinator.group.streams.group import StreamsGroup, StreamsGroupState
from millbeck.coordinator.group.streams.groups import StreamsGroups
from millbeck.coordinator.group.streams.membership import HeartbeatAnswer
from millbeck.coordinator.group.streams.records import STREAMS_KEYS
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.sweep import Sweep
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.wire.messages.classic_groups import (
    DescribedClassicGroup,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, DescribedConsumerGroup
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from millbeck.wire.messages.groups import DeletableGroupResult, ListedGroup
from millbeck.wire.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from millbeck.wire.messages.streams_groups import StreamsGroupHeartbeatRequest

BATCHED_LEAVE_VERSION = 3

EXPIRY_KEY = ("expire-offsets",)


Group = ClassicGroup | ConsumerGroup | StreamsGroup


class GroupShard:
    def __init__(
        self,
        registry: SnapshotRegistry,
        timers: Timers[GroupRecord],
        options: GroupShardOptions,
        *,
        cluster: ClusterView,
        background: BackgroundExecutor,
        share: BuildShareGroups = share_groups.without_coordinator,
    ) -> None:
        self._options = options
        self._isolation = timers.isolation
        self._groups: TimelineDict[str, Group] = TimelineDict(registry)
        self._offsets = OffsetStore(registry)
        self._counters = Counters()
        self._rebalancer = Rebalancer(self._groups, timers, options.classic, self._counters)
        self._consumer = ConsumerGroups(
            self._groups,
            timers,
            options,
            cluster=cluster,
            background=background,
            counters=self._counters,
            on_downgraded=self._downgraded,
            on_upgraded=self._rebalancer.cancel_pending,
        )
        self.streams = StreamsGroups(
            self._groups, timers, options.streams, cluster=cluster, background=background, counters=self._counters
        )
        self.share: ShareGroups = share(registry, timers, cluster)
        self._expiring = Sweep(
            timers,
            EXPIRY_KEY,
            self._expire,
            keys=lambda: self._groups,
            interval_ms=lambda: options.offsets.retention_check_interval_ms,
            weight=self._offsets.count,
        )

    # Records

    def encode(self, record: GroupRecord) -> tuple[bytes, bytes | None]:
        return records.encode(record)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        return records.decode(key, value)

    def replay(self, record: GroupRecord, *, offset: int, producer_id: int) -> None:
        key, value = record.key, record.value
        if isinstance(key, GroupMetadataKey):
            if value is not None:
                assert isinstance(value, GroupMetadataValue)
                self._groups[key.group] = ClassicGroup.from_record(key.group, value)
            elif isinstance(self._groups.get(key.group), ClassicGroup):
                del self._groups[key.group]
        elif isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            if value is not None and key.group not in self._groups:
                # A commit without joining creates a group that has no members and no protocol.
                self._groups[key.group] = ClassicGroup(key.group)
            self._offsets.replay(key, value, offset=offset, producer_id=producer_id)
        elif isinstance(key, SHARE_KEYS):
            self.share.replay(key, value)
        elif isinstance(key, STREAMS_KEYS):
            self.streams.replay(key, value)
        else:
            self._consumer.replay(key, value)

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None:
        self._offsets.end_transaction(producer_id, is_committed=is_committed)

    def on_loaded(self, now_ms: int) -> None:
        self._expiring.start()
        for group in list(self._groups.values()):
            self._isolation.run(("start timers", group.group_id), partial(self._resume, group, now_ms))
        self.share.on_loaded()

    def _resume(self, group: Group, now_ms: int) -> None:
        if isinstance(group, ConsumerGroup):
            self._consumer.coordination.resume(group)
        elif isinstance(group, StreamsGroup):
            self.streams.membership.resume(group)
        else:
            self._rebalancer.resume(group, now_ms)

    def on_unloaded(self, error: ApiError) -> None:
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup):
                self._isolation.run(("unload", group.group_id), partial(self._rebalancer.fail_all, group, error))

    # Membership

    def join(
        self,
        request: JoinGroupRequest,
        *,
        version: int,
        client: Client,
        new_uuid: str,
        reply: ResponseCallback[JoinGroupResponse],
        now_ms: int,
    ) -> GroupResult:
        """Handle JoinGroup. ``new_uuid`` is a new random UUID in text form, for the id of a new member."""
        refusal = self._refuse_join(request)
        if refusal is not None:
            reply.reply(JoinGroupResponse(error_code=refusal.code, member_id=request.member_id))
            return NOTHING
        known = self._groups.get(request.group_id)
        if isinstance(known, ConsumerGroup) and not known.is_empty:
            return self._join_consumer_group(known, request, version, client, new_uuid, reply, now_ms)
        former, tombstones = known, list[GroupRecord]()
        if not isinstance(known, ClassicGroup | None):
            tombstones = self._tombstones(known)
            known = None
        is_created = known is None
        group = ClassicGroup(request.group_id, now_ms=now_ms) if known is None else known
        if is_created:
            self._groups[request.group_id] = group
        joining = JoinGroupHandler(
            self._rebalancer,
            group,
            request,
            version=version,
            client=client,
            new_uuid=new_uuid,
            reply=reply,
            now_ms=now_ms,
        )
        result = joining.run()
        if not is_created:
            return result
        if not group.members and not group.pending_joins:
            if former is not None:
                # An empty consumer or streams group remains one if the join fails.
                self._groups[request.group_id] = former
            else:
                del self._groups[request.group_id]
            return NOTHING
        assert not result.records, "an initial rebalance writes nothing"
        self.streams.membership.forget(request.group_id)
        return Result(
            records=[*tombstones, group.empty_group_record()],
            is_replayed=False,
            on_failed=lambda error, _: reply.fail(error),
            on_timeout=reply.fail,
        )

    def _join_consumer_group(
        self,
        group: ConsumerGroup,
        request: JoinGroupRequest,
        version: int,
        client: Client,
        new_uuid: str,
        reply: ResponseCallback[JoinGroupResponse],
        now_ms: int,
    ) -> GroupResult:
        try:
            result = classic_members.join(
                self._consumer.coordination,
                group,
                request,
                version=version,
                client=client,
                new_uuid=new_uuid,
                now_ms=now_ms,
            )
        except ApiError as error:
            reply.reply(JoinGroupResponse(error_code=error.code, member_id=request.member_id))
            return NOTHING
        joined = result.on_committed

        def committed(later_ms: int) -> None:
            if joined is not None:
                joined(later_ms)
            self._consumer.downgrade_soon(group.group_id)

        return replace(result, on_committed=committed)

    def _downgraded(self, group_id: str, now_ms: int) -> None:
        """Rebalance a group that was downgraded to a classic group, so that its members rejoin."""
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup) and group.state is GroupState.STABLE:
            self._rebalancer.resume(group, now_ms)
            self._rebalancer.prepare_or_complete(group, now_ms)

    def _refuse_join(self, request: JoinGroupRequest) -> ApiError | None:
        options = self._options.classic
        if request.group_id == "":
            return errors.InvalidGroupId()
        known = self._groups.get(request.group_id)
        if request.group_id in self.share or (isinstance(known, StreamsGroup) and not known.is_empty):
            return errors.InconsistentGroupProtocol()
        if not options.session_timeout_ms_min <= request.session_timeout_ms <= options.session_timeout_ms_max:
            return errors.InvalidSessionTimeout()
        if request.member_id != "" and request.group_id not in self._groups:
            return errors.UnknownMemberId()
        return None

    def sync(self, request: SyncGroupRequest, reply: ResponseCallback[SyncGroupResponse]) -> GroupResult:
        if request.group_id == "":
            raise errors.InvalidGroupId()
        group = self._groups.get(request.group_id)
        if group is None or isinstance(group, StreamsGroup):
            raise errors.UnknownMemberId()
        if isinstance(group, ConsumerGroup):
            return classic_members.sync(self._consumer.coordination, group, request)
        return sync.sync(self._rebalancer, group, request, reply)

    def heartbeat(self, request: HeartbeatRequest) -> Result[GroupRecord, HeartbeatResponse]:
        if request.group_id == "":
            raise errors.InvalidGroupId()
        group = self._groups.get(request.group_id)
        if group is None or isinstance(group, StreamsGroup):
            raise errors.UnknownMemberId()
        if isinstance(group, ConsumerGroup):
            return classic_members.heartbeat(self._consumer.coordination, group, request)
        return membership.heartbeat(self._rebalancer, group, request)

    def leave(self, request: LeaveGroupRequest, version: int, now_ms: int) -> Result[GroupRecord, LeaveGroupResponse]:
        """Handle LeaveGroup. Before version 3 there is one member, and its error is the top-level error.

        Raises `UnknownMemberId` for a group that does not exist, so that this response need not wait for a commit.
        """
        if request.group_id == "":
            raise errors.InvalidGroupId()
        is_batched = version >= BATCHED_LEAVE_VERSION
        members = request.members if is_batched else [MemberIdentity(request.member_id)]
        group = self._groups.get(request.group_id)
        if group is None or isinstance(group, StreamsGroup):
            raise errors.UnknownMemberId("Group not found.")
        leaving = LeaveGroupRequest(group_id=request.group_id, members=members)
        if isinstance(group, ConsumerGroup):
            result: GroupResult = classic_members.leave(self._consumer.coordination, group, leaving, now_ms)
        else:
            result = membership.leave(self._rebalancer, group, leaving, now_ms)
        response: LeaveGroupResponse | None = result.response
        if not is_batched and response is not None:
            response.error_code = response.members[0].error_code
            response.members = []
        return result

    def consumer_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, sender: Sender, now_ms: int
    ) -> HeartbeatResult:
        """Handle ConsumerGroupHeartbeat: a member joins, heartbeats or leaves."""
        self._refuse_share_group(request.group_id)
        return self._consumer.heartbeat(request, sender, now_ms)

    def describe_consumer_group(self, group_id: str, at: int) -> DescribedConsumerGroup:
        return self._consumer.describe(group_id, at)

    def streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, client: Client, now_ms: int
    ) -> Result[GroupRecord, HeartbeatAnswer]:
        """Handle StreamsGroupHeartbeat: a member of a streams group joins, heartbeats or leaves."""
        self._refuse_share_group(request.group_id)
        return self.streams.membership.heartbeat(request, client, now_ms)

    def share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, *, client_id: str, client_host: str, now_ms: int
    ) -> Result[GroupRecord, ShareGroupHeartbeatResponse]:
        """Handle ShareGroupHeartbeat: a member of a share group joins, heartbeats or leaves."""
        self._refuse_other_kinds(request.group_id)
        return self.share.heartbeat(request, client_id=client_id, client_host=client_host, now_ms=now_ms)

    def set_share_starts(
        self, group_id: str, starts: Sequence[StartOffset]
    ) -> Result[GroupRecord, StateInitialization]:
        """Handle AlterShareGroupOffsets: set the start offsets of an empty or new share group."""
        self._refuse_other_kinds(group_id)
        return self.share.set_starts(group_id, starts)

    def _refuse_other_kinds(self, group_id: str) -> None:
        if group_id in self._groups:
            raise errors.GroupIdNotFound(f"Group {group_id} is not a share group.")

    def _refuse_share_group(self, group_id: str) -> None:
        if group_id in self.share:
            raise errors.GroupIdNotFound(f"Group {group_id} is a share group.")

    # Offsets

    def commit_offsets(
        self, request: OffsetCommitRequest, version: int, now_ms: int
    ) -> Result[GroupRecord, OffsetCommitResponse]:
        """Handle OffsetCommit. Every topic has name and id: the caller has resolved the missing one."""
        self._refuse_share_group(request.group_id)
        group = self._groups.get(request.group_id)
        if isinstance(group, ConsumerGroup):
            self._validate_consumer_commit(group, request, version)
            group = None
        elif isinstance(group, StreamsGroup):
            streams_offset_rules.validate_commit(group, request, version)
            group = None
        else:
            commit.validate_commit(group, request, version)
        if group is not None and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            # A commit counts as a heartbeat.
            member = group.members[request.member_id]
            self._rebalancer.keep_session(group, member.member_id, member.session_timeout_ms)
        result = commit.commit(request, self._options.offsets, now_ms)
        self._counters.offset_commits += len(result.records)
        return result

    def _validate_consumer_commit(self, group: ConsumerGroup, request: OffsetCommitRequest, version: int) -> None:
        member = offset_rules.validate_commit(group, request, version)
        if member is not None and member.classic is not None:
            timeout_ms = member.classic.session_timeout_ms
            self._consumer.coordination.keep_session(group.group_id, member.member_id, timeout_ms)

    def commit_in_transaction(
        self, request: OffsetCommitRequest, now_ms: int
    ) -> Result[GroupRecord, OffsetCommitResponse]:
        """Handle TxnOffsetCommit, passed as an OffsetCommit: its offsets take effect when the transaction commits."""
        transactional.validate_commit(self._groups.get(request.group_id), request)
        result = commit.commit(request, self._options.offsets, now_ms)
        self._counters.offset_commits += len(result.records)
        return result

    def fetch_offsets(self, request: OffsetFetchRequestGroup, at: int) -> OffsetFetchResponseGroup:
        """Handle OffsetFetch for one group, as of ``at``. Every topic has name and id."""
        group = self._groups.get_at(request.group_id, at)
        if isinstance(group, ConsumerGroup):
            offset_rules.validate_fetch(group, request.member_id, request.member_epoch, at)
        elif isinstance(group, StreamsGroup):
            streams_offset_rules.validate_fetch(group, request.member_id, request.member_epoch)
        is_known = request.group_id in self._groups
        return fetch.fetch(self._offsets, request, at, is_known=is_known)

    def fetch_stable_offsets(self, request: OffsetFetchRequestGroup) -> Result[GroupRecord, OffsetFetchResponseGroup]:
        """Handle OffsetFetch with RequireStable: waits until the offsets read are committed, and reports open
        transactions."""
        return Result(response=self.fetch_offsets(request, LATEST))

    def delete_offsets(self, request: OffsetDeleteRequest) -> Result[GroupRecord, OffsetDeleteResponse]:
        if request.group_id == "":
            raise errors.InvalidGroupId()
        result = removal.delete(self._offsets, self._groups.get(request.group_id), request)
        self._counters.offset_deletions += len(result.records)
        return result

    def on_topics_deleted(self, deleted: Sequence[tuple[str, bytes]]) -> Result[GroupRecord, None]:
        """Remove the committed offsets of deleted topics, given as (name, id)."""
        found = removal.all_of_topics(self._offsets, deleted)
        found += self.share.on_topics_deleted([topic_id for _, topic_id in deleted])
        return Result(records=found, is_atomic=False)

    # Listing, describing and deleting groups

    def list_groups(self, states: Sequence[str], types: Sequence[str], at: int) -> list[ListedGroup]:
        found = listing.list_groups(self._groups.copy_at(at).values(), states, types, at)
        return found + self.share.list_groups(states, types, at)

    def describe_groups(self, group_ids: Sequence[str], version: int, at: int) -> list[DescribedClassicGroup]:
        return [listing.describe(group_id, self._groups.get_at(group_id, at), version) for group_id in group_ids]

    def delete_groups(self, group_ids: Sequence[str]) -> Result[GroupRecord, list[DeletableGroupResult]]:
        found: list[GroupRecord] = []
        answers = []
        for group_id in dict.fromkeys(group_ids):
            code = errors.NONE
            try:
                if group_id in self.share:
                    found += self.share.delete(group_id)
                    answers.append(DeletableGroupResult(group_id, code))
                    continue
                listing.validate_deletion(self._groups.get(group_id))
            except ApiError as error:
                code = error.code
            else:
                found += removal.all_of_group(self._offsets, group_id)
                found += self._tombstones(self._groups[group_id])
            answers.append(DeletableGroupResult(group_id, code))
        # A group may have more offsets than fit in one batch; after a partial failure, the next request deletes the
        # rest.
        return Result(records=found, response=answers, is_atomic=False)

    def _tombstones(self, group: Group) -> list[GroupRecord]:
        if isinstance(group, ConsumerGroup):
            return self._consumer.tombstones(group)
        if isinstance(group, StreamsGroup):
            return group_tombstones(group)
        return [records.group_tombstone(group.group_id)]

    # Expiration

    def _expire(self, group_id: str, now_ms: int) -> GroupResult | None:
        group = self._groups.get(group_id)
        if group is None:
            return None
        retention_ms = self._options.offsets.retention_ms
        found, is_bare = removal.expire(self._offsets, group, retention_ms=retention_ms, now_ms=now_ms)
        self._counters.offset_expirations += len(found)
        if is_bare and group.is_empty and not (isinstance(group, ClassicGroup) and group.pending_joins):
            found += self._tombstones(group)
        return Result(records=found, is_atomic=False)

    # Metrics

    def committed_offsets(self) -> Iterator[CommittedOffset]:
        """All committed offsets, including those of empty groups; the caller knows the log end offsets."""
        for group_id in self._offsets.group_ids():
            group = self._groups.get(group_id)
            is_empty = group is None or group.is_empty
            for (topic, partition), committed in self._offsets.of_group(group_id).items():
                yield CommittedOffset(group_id, topic, partition, committed.offset, is_empty)

    def statistics(self) -> ShardStatistics:
        counts = dict.fromkeys((state.value for state in GroupState), 0)
        consumer_counts = dict.fromkeys((state.value for state in ConsumerGroupState), 0)
        streams_counts = dict.fromkeys((state.value for state in StreamsGroupState), 0)
        of_type = {ClassicGroup: counts, ConsumerGroup: consumer_counts, StreamsGroup: streams_counts}
        for group in self._groups.values():
            of_type[type(group)][group.state.value] += 1
        return ShardStatistics(
            group_counts=counts,
            consumer_group_counts=consumer_counts,
            streams_group_counts=streams_counts,
            offset_count=len(self._offsets),
            counters=self._counters,
        )
