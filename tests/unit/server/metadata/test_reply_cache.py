"""Replies are kept for one image, few and small."""

from __future__ import annotations

from dataclasses import replace

from millbeck.metadata.image import EMPTY
from millbeck.server.metadata.reply_cache import CACHED_BYTES_MAX, CACHED_REPLIES_MAX, MetadataReplies


def test_a_reply_is_kept_until_the_image_changes() -> None:
    replies = MetadataReplies()
    assert replies.get(EMPTY, "a") is None
    replies.put("a", b"body")
    assert replies.get(EMPTY, "a") == b"body"
    later = replace(EMPTY, offset=5)
    assert replies.get(later, "a") is None
    assert (replies.get(EMPTY, "a"), replies.size_bytes) == (None, 0)


def test_the_oldest_goes_when_there_are_many() -> None:
    replies = MetadataReplies()
    for number in range(CACHED_REPLIES_MAX + 2):
        replies.put(number, b"x")
    kept = [number for number in range(CACHED_REPLIES_MAX + 2) if replies.get(EMPTY, number)]
    assert kept == list(range(2, CACHED_REPLIES_MAX + 2))
    assert replies.size_bytes == CACHED_REPLIES_MAX


def test_what_is_kept_is_bounded_in_bytes() -> None:
    replies = MetadataReplies()
    replies.put("huge", b"x" * (CACHED_BYTES_MAX + 1))
    assert replies.get(EMPTY, "huge") is None
    half = b"x" * (CACHED_BYTES_MAX // 2)
    for key in ("a", "b", "c"):
        replies.put(key, half)
    assert [key for key in ("a", "b", "c") if replies.get(EMPTY, key)] == ["b", "c"]
    replies.put("b", half)
    assert replies.size_bytes == CACHED_BYTES_MAX
