from __future__ import annotations

from millbeck.wire import codec
from millbeck.wire.compact import compact_string, node_endpoints_section
from millbeck.wire.messages.produce import ProduceResponse
from millbeck.wire.messages.shared import NodeEndpoint


def test_compact_strings() -> None:
    assert compact_string(None) == b"\0"
    assert compact_string("") == b"\1"
    assert compact_string("é") == b"\3\xc3\xa9"
    assert compact_string("x" * 127) == b"\x80\1" + b"x" * 127


def test_the_endpoints_section_is_what_the_generated_codec_writes() -> None:
    endpoints = [NodeEndpoint(1, "one", 9092, "rack"), NodeEndpoint(2, "x" * 200, 65535, None)]
    encoded = codec.encoder(ProduceResponse, 10)(ProduceResponse(node_endpoints=endpoints))
    assert encoded == b"\1\0\0\0\0" + node_endpoints_section(endpoints)
