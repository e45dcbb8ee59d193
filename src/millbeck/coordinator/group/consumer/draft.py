"""The pending changes of one operation on a consumer group, and the group's state as if they were replayed already.

An operation has several steps that build on each other, while the group itself changes only when the records are
appended. The draft holds both the records and the resulting state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from millbeck.coordinator.group.consumer import assignment, writing
from millbeck.coordinator.group.consumer.assignment import Assignment
from millbeck.coordinator.group.consumer.group import ConsumerGroup, ResolvedRegex
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.records import GroupRecord

_KeysOf = Callable[[ConsumerMember], Iterable[str]]


class Draft:
    def __init__(self, group: ConsumerGroup, records: list[GroupRecord] | None = None) -> None:
        """``records`` created ``group`` if it is not stored yet, such as during an upgrade."""
        self.group = group
        self.records: list[GroupRecord] = records or []
        self.epoch = group.epoch
        self.metadata_hash = group.metadata_hash
        self.assignment_epoch = group.assignment_epoch
        self._members: dict[str, ConsumerMember | None] = {}
        self._targets: dict[str, Assignment | None] = {}
        self._regexes: dict[str, ResolvedRegex] = {}

    # Reading

    def members(self) -> dict[str, ConsumerMember]:
        found = dict(self.group.members)
        for member_id, member in self._members.items():
            if member is None:
                found.pop(member_id, None)
            else:
                found[member_id] = member
        return found

    def has_member(self, member_id: str) -> bool:
        if member_id in self._members:
            return self._members[member_id] is not None
        return member_id in self.group.members

    @property
    def is_empty(self) -> bool:
        if any(member is not None for member in self._members.values()):
            return False
        return all(member_id in self._members for member_id in self.group.members)

    def target_of(self, member_id: str) -> Assignment:
        found = self._targets[member_id] if member_id in self._targets else self.group.targets.get(member_id)
        return assignment.NOTHING if found is None else found

    def resolved(self, regex: str) -> ResolvedRegex | None:
        return self._regexes.get(regex) or self.group.regexes.get(regex)

    def topics_of(self, member: ConsumerMember) -> tuple[str, ...]:
        resolved = None if member.regex is None else self.resolved(member.regex)
        if resolved is None:
            return member.topic_names
        return tuple(sorted({*member.topic_names, *resolved.topics}))

    def regexes(self) -> list[str]:
        """The regular expressions that members subscribe with."""
        return self._present(self.group.regex_counts, lambda member: (member.regex,) if member.regex else ())

    def subscribed_names(self) -> list[str]:
        """Every topic a member subscribes to, existing or not, each once."""
        names = self._present(self.group.name_counts, lambda member: member.topic_names)
        for regex in self.regexes():
            resolved = self.resolved(regex)
            if resolved is not None:
                names += resolved.topics
        return list(dict.fromkeys(names))

    def _present(self, counts: Mapping[str, int], keys_of: _KeysOf) -> list[str]:
        """The keys whose count is above zero after the draft's changes."""
        changes: dict[str, int] = {}
        for member_id, member in self._members.items():
            old = self.group.members.get(member_id)
            for key in () if old is None else keys_of(old):
                changes[key] = changes.get(key, 0) - 1
            for key in () if member is None else keys_of(member):
                changes[key] = changes.get(key, 0) + 1
        found = [key for key, count in counts.items() if count + changes.get(key, 0) > 0]
        return found + [key for key, change in changes.items() if change > 0 and key not in counts]

    # Deciding

    def store_member(self, member: ConsumerMember) -> None:
        self.records.append(writing.member_record(self.group.group_id, member))
        self._members[member.member_id] = member

    def store_current(self, member: ConsumerMember) -> None:
        self.records.append(writing.current_record(self.group.group_id, member))
        self._members[member.member_id] = member

    def remove_member(self, member_id: str) -> None:
        self.records += writing.member_tombstones(self.group.group_id, member_id)
        self._members[member_id] = None
        self._targets[member_id] = None

    def store_target(self, member_id: str, target: Assignment) -> None:
        self.records.append(writing.target_record(self.group.group_id, member_id, target))
        self._targets[member_id] = target

    def store_targets(self, epoch: int, targets: Mapping[str, Assignment]) -> None:
        """Store the target assignment of a group epoch; unchanged members are not written again."""
        for member_id, target in targets.items():
            if target != self.target_of(member_id) or (
                member_id not in self.group.targets and member_id not in self._targets
            ):
                self.store_target(member_id, target)
        self.assignment_epoch = epoch
        self.records.append(writing.target_epoch_record(self.group.group_id, epoch, self.group.assigned_at_ms or 0))

    def raise_epoch(self, metadata_hash: int) -> None:
        self.epoch += 1
        self.metadata_hash = metadata_hash
        self.records.append(
            writing.group_record(self.group.group_id, epoch=self.epoch, metadata_hash=self.metadata_hash)
        )

    def store_regex(self, regex: str, resolved: ResolvedRegex) -> None:
        self.records.append(writing.regex_record(self.group.group_id, regex, resolved))
        self._regexes[regex] = resolved

    def remove_regex(self, regex: str) -> None:
        self.records.append(writing.regex_tombstone(self.group.group_id, regex))
