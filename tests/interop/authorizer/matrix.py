"""The matrix: every question, by users with every kind of ACL, about every kind of resource.

Each combination of a question's version, one of its needs and a kind of ACL has a user of its own, who is allowed the
other needs without restriction. All resources carry the user's name, so that no answer depends on another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from millbeck.security.authorizer import CLUSTER_NAME, PatternType, Permission, ResourceType
from millbeck.wire.messages.acls import AclCreation, CreateAclsRequest
from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest
from millbeck.wire.messages.metadata import MetadataRequest
from millbeck.wire.messages.share_groups import ShareGroupDescribeRequest, ShareGroupHeartbeatRequest
from millbeck.wire.messages.streams_groups import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import InitProducerIdRequest
from millbeck.wire.schema import schema_of
from tests.interop.authorizer.asking import PASSWORD, Asking
from tests.interop.authorizer.masking import masked
from tests.interop.authorizer.questions import (
    MEMBER_ID,
    MISSING_ID,
    QUESTIONS,
    GroupKind,
    Need,
    Question,
    Subject,
    Target,
    streams_heartbeat,
)

ADMIN = "admin"
INTERNAL_TOPIC = "__consumer_offsets"
LISTENER = "SASL"
AT_ONCE = 200
WAIT_S = 60.0
RETRIABLE = (14, 15, 16, 51)
"""A coordinator that is loading, not available or elsewhere, and transactions in progress."""


class Protocol(NamedTuple):
    """How a group in which the broker assigns is made and described."""

    version: int
    join: Callable[[str], Any]
    heartbeat: Callable[..., Any]
    describe: Callable[[list[str]], Any]
    assigned: str = "topic_partitions"
    """The field of a described assignment that is filled in the end."""


def _consumer_join(name: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=name,
        member_id=MEMBER_ID,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )


PROTOCOLS = {
    GroupKind.CONSUMER: Protocol(1, _consumer_join, ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest),
    GroupKind.SHARE: Protocol(
        1,
        lambda name: ShareGroupHeartbeatRequest(group_id=name, member_id=MEMBER_ID, subscribed_topic_names=[name]),
        ShareGroupHeartbeatRequest,
        ShareGroupDescribeRequest,
    ),
    GroupKind.STREAMS: Protocol(
        0,
        lambda name: streams_heartbeat(name, name),
        StreamsGroupHeartbeatRequest,
        StreamsGroupDescribeRequest,
        "active_tasks",
    ),
}


class Granted(StrEnum):
    """What kind of ACL the user has for the need in question."""

    NOTHING = "nothing"
    LITERAL = "literal"
    PREFIX = "prefix"
    WILDCARD = "wildcard"
    DENIED = "denied"
    """Allowed by one literal ACL and denied by another."""
    DENIED_BY_PREFIX = "denied by prefix"
    OTHER_HOST = "other host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    number: int
    question: Question
    version: int
    need: int
    granted: Granted

    @property
    def user(self) -> str:
        return f"user-{self.number:04d}"

    @property
    def name(self) -> str:
        operation, resource_type = self.question.needs[self.need]
        return f"{self.question.name} v{self.version}, {operation.name} on {resource_type.name}: {self.granted}"

    def names(self, resource_type: ResourceType) -> list[str]:
        """The names of the resources of a type that the case asks about."""
        if resource_type is ResourceType.CLUSTER:
            return [CLUSTER_NAME]
        own = [f"{self.user}.{target}" for target in (Target.EXISTING, Target.MISSING)]
        is_internal = resource_type is ResourceType.TOPIC and Target.INTERNAL in self.question.targets
        return [*own, INTERNAL_TOPIC] if is_internal else own

    def acls(self) -> Iterator[AclCreation]:
        for number, need in enumerate(self.question.needs):
            if number == self.need:
                yield from self._granted(need)
            else:
                for name in self.names(need[1]):
                    yield self._acl(need, name)

    def _granted(self, need: Need) -> Iterator[AclCreation]:
        names = self.names(need[1])
        if self.granted is Granted.WILDCARD:
            # The cluster has one name, and ACLs on it may have no other.
            yield self._acl(need, CLUSTER_NAME if need[1] is ResourceType.CLUSTER else "*")
        elif self.granted is Granted.PREFIX:
            for prefix in self._prefixes(need[1]):
                yield self._acl(need, prefix, pattern=PatternType.PREFIXED)
        elif self.granted is not Granted.NOTHING:
            host = "10.1.2.3" if self.granted is Granted.OTHER_HOST else "*"
            for name in names:
                yield self._acl(need, name, host=host)
            if self.granted is Granted.DENIED:
                for name in names:
                    yield self._acl(need, name, permission=Permission.DENY)
            elif self.granted is Granted.DENIED_BY_PREFIX:
                for prefix in self._prefixes(need[1]):
                    yield self._acl(need, prefix, pattern=PatternType.PREFIXED, permission=Permission.DENY)

    def _prefixes(self, resource_type: ResourceType) -> list[str]:
        names = self.names(resource_type)
        return names if resource_type is ResourceType.CLUSTER else list(dict.fromkeys(name[:9] for name in names))

    def _acl(
        self,
        need: Need,
        name: str,
        *,
        pattern: PatternType = PatternType.LITERAL,
        host: str = "*",
        permission: Permission = Permission.ALLOW,
    ) -> AclCreation:
        operation, resource_type = need
        return AclCreation(resource_type, name, pattern, f"User:{self.user}", host, operation, permission)


def cases() -> list[Case]:
    found: list[Case] = []
    for question in QUESTIONS:
        for position, version in enumerate(question.versions):
            # The decisions are those of the last version; of older ones only the form of the answers is of interest.
            is_last = position == len(question.versions) - 1
            kinds = tuple(Granted) if is_last else (Granted.NOTHING, Granted.LITERAL, Granted.DENIED)
            for need in range(len(question.needs)):
                for granted in kinds:
                    found.append(
                        Case(number=len(found), question=question, version=version, need=need, granted=granted)
                    )
    return found


def properties(ports: Mapping[str, int], users: Iterable[str]) -> dict[str, str]:
    """The settings of a node that is asked: a listener for users, and one without any for itself."""
    listed = " ".join(f'user_{name}="{PASSWORD}"' for name in (ADMIN, *users))
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(
            f"{name}://127.0.0.1:{port}" for name, port in ports.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{LISTENER}:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {listed};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "delegation.token.secret.key": "the same for both",
        "offsets.topic.num.partitions": "1",
        "transaction.state.log.num.partitions": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.max.session.timeout.ms": "3600000",
        "group.consumer.session.timeout.ms": "3600000",
        "group.share.max.session.timeout.ms": "3600000",
        "group.share.session.timeout.ms": "3600000",
    }


class Matrix:
    def __init__(self, port: int, chosen: Sequence[Case]) -> None:
        self._port = port
        self._cases = chosen
        self._topic_ids: dict[str, bytes] = {}

    def answers(self) -> dict[str, Any]:
        """The masked answer of each case and target."""
        found: dict[str, Any] = {}
        with Asking(self._port, ADMIN) as admin:
            self._prepare(admin)
        for case in self._cases:
            for target in case.question.targets:
                found[f"{case.name}, {target}"] = self._answer(case, target)
        return found

    def _answer(self, case: Case, target: Target) -> Any:
        request = case.question.request(self._subject(case, target), case.version)
        try:
            with Asking(self._port, case.user) as client:
                response = client.ask(request, case.version)
        except ConnectionError as error:
            return str(error)
        return masked(response, case.user)

    def _subject(self, case: Case, target: Target) -> Subject:
        own = f"{case.user}.{Target.EXISTING if target is Target.INTERNAL else target}"
        topic = INTERNAL_TOPIC if target is Target.INTERNAL else own
        return Subject(topic=topic, topic_id=self._topic_ids.get(topic, MISSING_ID), group=own, transactional_id=own)

    # the resources

    def _prepare(self, admin: Asking) -> None:
        for key_type, key in ((0, "group"), (1, "transaction")):
            self._repeat(
                lambda key_type=key_type, key=key: [
                    each.error_code
                    for each in admin.ask(
                        FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 6
                    ).coordinators
                ]
            )
        # Before the topics: who sees the last of them has seen the ACLs.
        for acls in _batches([entry for case in self._cases for entry in case.acls()]):
            results = admin.ask(CreateAclsRequest(creations=list(acls)), 3).results
            assert not any(each.error_code for each in results), [each for each in results if each.error_code]
        names = [f"{case.user}.{Target.EXISTING}" for case in self._cases]
        for batch in _batches(names):
            wanted = [CreatableTopic(name, num_partitions=1, replication_factor=1) for name in batch]
            answer = admin.ask(CreateTopicsRequest(topics=wanted, timeout_ms=60_000), 7)
            assert {topic.error_code for topic in answer.topics} == {0}, answer
        self._wait_for_topics(admin, names)
        for case in self._cases:
            self._prepare_group(admin, case)
            if ResourceType.TRANSACTIONAL_ID in case.question.asks_about:
                request = InitProducerIdRequest(
                    transactional_id=f"{case.user}.{Target.EXISTING}", transaction_timeout_ms=60_000
                )
                self._repeat(lambda request=request: [admin.ask(request, 4).error_code])
        self._wait_for_assignments(admin)

    def _prepare_group(self, admin: Asking, case: Case) -> None:
        name = f"{case.user}.{Target.EXISTING}"
        if ResourceType.GROUP not in case.question.asks_about:
            return
        if case.question.groups is GroupKind.CLASSIC:
            topic = OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(0, 0)])
            commit = OffsetCommitRequest(group_id=name, generation_id_or_member_epoch=-1, topics=[topic])
            self._repeat(
                lambda: [each.error_code for topic in admin.ask(commit, 9).topics for each in topic.partitions]
            )
            return
        protocol = PROTOCOLS[case.question.groups]
        self._repeat(lambda: [admin.ask(protocol.join(name), protocol.version).error_code])

    def _wait_for_assignments(self, admin: Asking) -> None:
        """Until the members of consumer, share and streams groups have their partitions or tasks."""
        waiting = [
            case
            for case in self._cases
            if ResourceType.GROUP in case.question.asks_about and case.question.groups is not GroupKind.CLASSIC
        ]
        deadline_s = time.monotonic() + WAIT_S
        while waiting:
            assert time.monotonic() < deadline_s, waiting[0]
            time.sleep(0.1)
            waiting = [case for case in waiting if not self._is_assigned(admin, case)]

    def _is_assigned(self, admin: Asking, case: Case) -> bool:
        name = f"{case.user}.{Target.EXISTING}"
        protocol = PROTOCOLS[case.question.groups]
        (group,) = admin.ask(protocol.describe([name]), protocol.version).groups
        (member,) = group.members
        if getattr(member.assignment, protocol.assigned):
            return True
        heartbeat = protocol.heartbeat(group_id=name, member_id=MEMBER_ID, member_epoch=member.member_epoch)
        admin.ask(heartbeat, protocol.version)
        return False

    def _repeat(self, ask: Any) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while True:
            codes = ask()
            if not any(codes):
                return
            assert all(code in (0, 3, *RETRIABLE) for code in codes), codes
            assert time.monotonic() < deadline_s, codes
            time.sleep(0.1)

    def _wait_for_topics(self, admin: Asking, names: Iterable[str]) -> None:
        deadline_s = time.monotonic() + WAIT_S
        while True:
            shown = admin.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
            self._topic_ids = {
                topic.name: topic.topic_id
                for topic in shown.topics
                if all(partition.error_code == 0 for partition in topic.partitions)
            }
            if all(name in self._topic_ids for name in names):
                return
            assert time.monotonic() < deadline_s
            time.sleep(0.2)


def _batches(entries: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(entries), AT_ONCE):
        yield entries[start : start + AT_ONCE]


def api_keys() -> set[int]:
    """The APIs that the matrix asks about."""
    sample = Subject(topic="t", topic_id=MISSING_ID, group="g", transactional_id="x")
    keys = {schema_of(type(each.request(sample, each.versions[-1]))).api_key for each in QUESTIONS}
    return {key for key in keys if key is not None}
