"""Validation of the names of topics, groups and client software. A topic's name becomes part of a directory's name, so
this is a security check.
"""

from __future__ import annotations

import re

from millbeck.kernel.errors import InvalidTopic

CONSUMER_OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
INTERNAL_TOPICS = (CONSUMER_OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC)
"""Internal topics of the brokers. The metadata log is not a topic, although its directory looks like one."""

TOPIC_NAME_LENGTH_MAX = 249
"""The maximum length of topic names: with ``-<partition>`` and a suffix such as ``.<uuid>-delete`` a directory name has
at most 255 characters."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]+", re.ASCII)
_SHOWN_LENGTH_MAX = 60
_SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def check_topic_name(name: str) -> None:
    """Raise `InvalidTopic` with the reason unless the name is a valid topic name."""
    if not name:
        raise InvalidTopic("the topic name must not be empty")
    if name in (".", ".."):
        raise InvalidTopic('the topic name must not be "." or ".."')
    # Escaped, because the name may have any content and is written to logs.
    shown = ascii(name) if len(name) <= _SHOWN_LENGTH_MAX else ascii(name[:_SHOWN_LENGTH_MAX]) + "..."
    if len(name) > TOPIC_NAME_LENGTH_MAX:
        raise InvalidTopic(f"the topic name {shown} is longer than {TOPIC_NAME_LENGTH_MAX} characters")
    if not _TOPIC_NAME.fullmatch(name):
        raise InvalidTopic(f"the topic name {shown} has characters other than ASCII letters, digits, '.', '_' and '-'")


def is_internal_topic(name: str) -> bool:
    return name in INTERNAL_TOPICS


def unify_collision_chars(name: str) -> str:
    """The name with dots replaced by underscores, as in metric names: two topics with equal results collide."""
    return name.replace(".", "_")


def is_software_name(text: str) -> bool:
    """Whether the text is valid as the name or version of a client's software (KIP-511)."""
    return _SOFTWARE_NAME.fullmatch(text) is not None
