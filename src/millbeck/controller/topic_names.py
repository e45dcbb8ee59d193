"""Which topic names are allowed, and which are too alike."""

from __future__ import annotations

import re
from collections.abc import Iterable

from millbeck.kernel.errors import InvalidTopic

NAME_LENGTH_MAX = 249
CLUSTER_METADATA_TOPIC = "__cluster_metadata"

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raises `InvalidTopic` for a name that can not be a directory's name or a metric's."""
    if not name:
        raise InvalidTopic("Topic name is invalid: the empty string is not allowed")
    if name in (".", ".."):
        raise InvalidTopic(f"Topic name is invalid: '{name}' is not allowed")
    if len(name) > NAME_LENGTH_MAX:
        raise InvalidTopic(
            f"Topic name is invalid: the length of '{name[:NAME_LENGTH_MAX]}...' is longer than the max allowed "
            f"length {NAME_LENGTH_MAX}"
        )
    if _LEGAL.fullmatch(name) is None:
        raise InvalidTopic(
            f"Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', "
            "'_' and '-'"
        )


def has_collision_characters(name: str) -> bool:
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Equal for names that differ only in dots and underscores, which metrics can not tell apart."""
    return name.replace(".", "_")


def collision_keys(names: Iterable[str]) -> dict[str, str]:
    """Key to name, for the names that could collide."""
    return {collision_key(name): name for name in names if has_collision_characters(name)}
