from __future__ import annotations

import pytest

from millbeck.wire.decoder_source import DecoderSource, skip_tags
from millbeck.wire.errors import DecodeError
from millbeck.wire.layout import TAGS_MAX, shape_of
from millbeck.wire.messages.classic_groups import HeartbeatResponse
from millbeck.wire.messages.fetch import FetchRequest
from millbeck.wire.schema import schema_of
from millbeck.wire.varint import unsigned_varint


def _source(cls: type, version: int) -> str:
    return DecoderSource(cls, shape_of(schema_of(cls), version), "title", 10).source()


def test_fixed_width_fields_are_read_at_once_with_the_count_that_follows() -> None:
    assert "= read_iiiibiiB(b, p); p += 26" in _source(FetchRequest, 12)
    assert "= read_ihB(b, p); p += 7" in _source(HeartbeatResponse, 4)


def test_structs_of_fixed_width_are_read_without_a_loop() -> None:
    assert "in iterate_iqi(b[p:" in _source(FetchRequest, 4)


def test_primitives_cost_no_call() -> None:
    assert "def " not in _source(FetchRequest, 12).removeprefix("def decode")


def test_unknown_tags_are_skipped_by_their_sizes() -> None:
    assert skip_tags(b"\5\2ab\x80\1\0rest", 0, 2) == 7
    assert skip_tags(b"\0" * 400, 0, 0) == 0


def test_as_many_tags_as_allowed_are_skipped() -> None:
    section = unsigned_varint(TAGS_MAX) + b"\7\0" * TAGS_MAX
    assert skip_tags(section, 1, section[0]) == len(section)


def test_one_tag_more_is_refused() -> None:
    section = unsigned_varint(TAGS_MAX + 1) + b"\7\0" * (TAGS_MAX + 1)
    with pytest.raises(DecodeError, match=r"too many tagged fields \(1025\)"):
        skip_tags(section, 1, section[0])
