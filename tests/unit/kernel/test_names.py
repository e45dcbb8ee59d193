"""Names that are allowed and names that are not."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidTopic
from millbeck.kernel.names import (
    check_topic_name,
    is_internal_topic,
    unify_collision_chars,
)


@pytest.mark.parametrize("name", ["a", "A-b_c.9", "...", ".hidden", "-", "__consumer_offsets", "x" * 249])
def test_allowed_topic_names(name: str) -> None:
    assert check_topic_name(name) is None  # type: ignore[func-returns-value]


REFUSED = {
    "empty": ("", "empty"),
    "dot": (".", '"."'),
    "dot dot": ("..", '".."'),
    "too long": ("x" * 250, "249"),
    "path": ("../x", "characters"),
    "slash": ("a/b", "characters"),
    "space": ("a b", "characters"),
    "line end": ("a\n", r"a\\n"),
    "nul": ("a\0", r"\\x00"),
    "other letters": ("größe", "characters"),
    "other digits": ("٣", "characters"),
}


@pytest.mark.parametrize(("name", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_topic_names_say_why(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopic, match=reason):
        check_topic_name(name)


def test_refusals_are_short_and_printable() -> None:
    with pytest.raises(InvalidTopic) as caught:
        check_topic_name("\x1b[31m" + "é" * 30_000)
    assert len(caught.value.message) < 600
    assert caught.value.message.isascii()
    assert caught.value.message.isprintable()


def test_internal_topics() -> None:
    assert [is_internal_topic(name) for name in ("__consumer_offsets", "__transaction_state", "__share_group_state")]
    assert not is_internal_topic("__cluster_metadata")
    assert not is_internal_topic("orders")


def test_dots_and_underscores_collide() -> None:
    assert unify_collision_chars("a.b_c") == unify_collision_chars("a_b.c") == "a_b_c"
    assert unify_collision_chars("a-b") == "a-b"
