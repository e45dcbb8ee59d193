"""What topics and groups may be called. A topic's name becomes a directory's name, so this is also a safety rule."""

from __future__ import annotations

import re

from millbeck.kernel.errors import InvalidGroupId, InvalidTopic

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)
"""Topics the brokers keep for themselves. The metadata log is no topic: it only looks like one on disk."""

TOPIC_NAME_LENGTH_MAX = 249
"""With ``-<partition>`` and a suffix such as ``.<uuid>-delete`` the directory still fits a file system's 255."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
_SHOWN_LENGTH_MAX = 60


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopic` with the reason unless the name may be a topic's."""
    if not name:
        raise InvalidTopic("a topic's name must not be empty")
    if name in (".", ".."):
        raise InvalidTopic('a topic must not be called "." or ".."')
    # Not the name as it came: it may hold anything, and ends up in logs.
    shown = ascii(name) if len(name) <= _SHOWN_LENGTH_MAX else ascii(name[:_SHOWN_LENGTH_MAX]) + "..."
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopic(f"the topic name {shown} is longer than {TOPIC_NAME_LENGTH_MAX} characters")
    if not _TOPIC_NAME.fullmatch(name):
        raise InvalidTopic(
            f"the topic name {shown} holds characters other than ASCII letters, digits, '.', '_' and '-'"
        )


def is_internal_topic(name: str) -> bool:
    return name in INTERNAL_TOPICS


def collision_key(name: str) -> str:
    """Two topics with equal keys collide: metric names turn dots into underscores."""
    return name.replace(".", "_")


def names_collide(one: str, other: str) -> bool:
    return collision_key(one) == collision_key(other)


def check_group_id(group_id: str | None) -> None:
    """Raise `InvalidGroupId` unless the id may name a group with members. Any text will do but the empty one."""
    if not group_id:
        raise InvalidGroupId("a group's id must not be empty")
