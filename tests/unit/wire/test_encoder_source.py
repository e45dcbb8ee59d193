from __future__ import annotations

from millbeck.wire.encoder_source import EncoderSource
from millbeck.wire.layout import shape_of
from millbeck.wire.messages.classic_groups import HeartbeatResponse
from millbeck.wire.messages.log_offsets import ListOffsetsRequest
from millbeck.wire.messages.metadata import MetadataResponse
from millbeck.wire.schema import schema_of


def _source(cls: type, version: int) -> str:
    return EncoderSource(cls, shape_of(schema_of(cls), version), "title").source()


def test_fixed_width_fields_and_an_empty_tagged_section_are_packed_at_once() -> None:
    assert "pack_ihx(m.throttle_time_ms, m.error_code)" in _source(HeartbeatResponse, 4)


def test_a_length_is_packed_with_what_comes_before_it() -> None:
    assert "pack_ibi(m.replica_id, m.isolation_level, len(" in _source(ListOffsetsRequest, 2)


def test_only_fields_that_are_not_ignorable_are_checked_for_their_default() -> None:
    source = _source(MetadataResponse, 0)
    assert "m.cluster_authorized_operations != -2147483648" in source
    assert "throttle_time_ms" not in source
