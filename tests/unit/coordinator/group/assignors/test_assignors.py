from __future__ import annotations

from millbeck.coordinator.group.assignors import ASSIGNORS
from millbeck.coordinator.group.assignors.specification import MemberSpecification, TopicSpecification

TOPIC = b"t" * 16


def test_the_assignors_have_kafka_s_names() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]


def test_each_gives_every_member_an_entry() -> None:
    members = [MemberSpecification(name, None, None, (TOPIC,), {}) for name in "ab"]
    for assignor in ASSIGNORS.values():
        assert assignor(members, {TOPIC: TopicSpecification(1)}) == {"a": {TOPIC: (0,)}, "b": {}}
