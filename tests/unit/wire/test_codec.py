"""The generated codecs against the interpreter, and what they do with bad input."""

from __future__ import annotations

import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.classic_groups import ConsumerProtocolSubscription
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)
from millbeck.wire.varint import unsigned_varint
from tests.model.wire import interpreter
from tests.model.wire.instances import Maker, instances, seeds, standalone_versions

MESSAGES = [cls for api in APIS.values() for cls in (api.request, api.response)]


@struct
class Inner:
    number: int = int32(default=-1)
    label: str | None = string(versions="3+", nullable="3+", default=None, tag=0)


@message(kind=Kind.DATA, versions="0-4", flexible="2+")
class Everything:
    """Has each kind of field once, with and without its peculiarities."""

    truth: bool = boolean()
    tiny: int = int8()
    small: int = int16(versions="1+", default=7)
    wide: int = int64(default=-1)
    port: int = uint16()
    crc: int = uint32(versions="0-3", ignorable=True)
    ratio: float = float64(default=0.5)
    key: bytes = uuid()
    name: str = string(default="none")
    legacy: str | None = string(nullable="0+", flexible="none")
    blob: bytes | None = bytes_(nullable="1+")
    batch: bytes | None = records(nullable="0+")
    inner: Inner = nested(of=Inner)
    maybe: Inner | None = nested(of=Inner, versions="2+", nullable="2+", default=None)
    numbers: list[int] = array(of=int64)
    truths: list[bool] = array(of=boolean)
    names: list[str] | None = array(of=string, nullable="1+", default=None)
    keys: list[bytes] = array(of=uuid, versions="2+")
    inners: list[Inner] = array(of=Inner)
    tagged_number: int = int32(versions="2+", tag=3, default=9)
    tagged_ratio: float = float64(versions="2+", tag=5, default=0.5)
    tagged_name: str | None = string(versions="2+", tag=200, nullable="2+")
    tagged_list: list[Inner] = array(of=Inner, versions="2+", tag=7)
    tagged_inner: Inner = nested(of=Inner, versions="2+", tag=8)
    tagged_maybe: Inner | None = nested(of=Inner, versions="2+", nullable="2+", tag=9)


@pytest.mark.parametrize("version", standalone_versions(Everything))
def test_every_kind_of_field_agrees_with_the_interpreter(version: int) -> None:
    @settings(max_examples=100, derandomize=True, database=None, deadline=None)
    @given(instances(Everything, version))
    def agree(value: Any) -> None:
        encoded = codec.encoder(Everything, version)(value)
        assert encoded == interpreter.encode(value, version)
        assert codec.decoder(Everything, version)(encoded) == (value, len(encoded))

    agree()


def test_a_message_by_hand() -> None:
    request = MetadataRequest([MetadataRequestTopic(name="ab")], allow_auto_topic_creation=False)
    assert codec.encoder(MetadataRequest, 4)(request) == b"\0\0\0\1\0\2ab\0"
    request.topics[0].topic_id = bytes(range(16))  # type: ignore[index]
    assert codec.encoder(MetadataRequest, 12)(request) == b"\2" + bytes(range(16)) + b"\3ab\0\0\0\0"


def test_decoding_starts_where_it_is_told_and_leaves_the_rest() -> None:
    encoded = codec.encoder(MetadataRequest, 4)(MetadataRequest())
    buffer = b"##" + encoded + b"rest"
    assert codec.decoder(MetadataRequest, 4)(memoryview(buffer), 2) == (MetadataRequest(), 2 + len(encoded))


def test_decoded_values_do_not_alias_the_buffer() -> None:
    buffer = bytearray(codec.encoder(Everything, 1)(Everything(key=b"k" * 16, blob=b"blob", batch=b"batch")))
    value, _ = codec.decoder(Everything, 1)(memoryview(buffer))
    buffer[:] = bytes(len(buffer))
    assert (value.key, value.blob, value.batch) == (b"k" * 16, b"blob", b"batch")


def test_codecs_are_made_once() -> None:
    assert codec.decoder(Everything, 2) is codec.decoder(Everything, 2)
    assert codec.encoder(Everything, 2) is codec.encoder(Everything, 2)


@pytest.mark.parametrize("make", [codec.decoder, codec.encoder])
def test_structs_and_unknown_versions_have_no_codec(make: Any) -> None:
    with pytest.raises(codec.SchemaError, match="outside its message"):
        make(Inner, 0)
    with pytest.raises(codec.SchemaError, match="not 5"):
        make(Everything, 5)


def test_a_tagged_struct_is_null_by_a_zero_and_any_other_by_minus_one() -> None:
    @message(kind=Kind.DATA, versions="0", flexible="0+")
    class Two:
        plain: Inner | None = nested(of=Inner, nullable="0+", default=None)
        tagged: Inner | None = nested(of=Inner, nullable="0+", tag=0)

    encode, decode = codec.encoder(Two, 0), codec.decoder(Two, 0)
    for value, hex_ in (
        (Two(None, None), "ff01000100"),
        (Two(None, Inner(5)), "ff010006010000000500"),
        (Two(Inner(5), Inner()), "01000000050000"),
    ):
        assert encode(value).hex() == hex_
        assert decode(bytes.fromhex(hex_)) == (value, len(hex_) // 2)


# What a version cannot carry.


def test_a_value_the_version_lacks_is_an_error_unless_ignorable() -> None:
    codec.encoder(Everything, 4)(Everything(crc=5, batch=b""))
    with pytest.raises(codec.EncodeError, match=r"Everything\.small does not exist in this version"):
        codec.encoder(Everything, 0)(Everything(small=8, blob=b""))
    with pytest.raises(codec.EncodeError, match=r"inner\.label"):
        codec.encoder(Everything, 2)(Everything(inner=Inner(1, "x")))
    codec.encoder(Everything, 0)(Everything(small=7, names=[]))


NULLS = {
    "string": Everything(name=None),  # type: ignore[arg-type]
    "bytes": Everything(blob=None, names=[]),
    "array": Everything(numbers=None),  # type: ignore[arg-type]
    "nullable array too early": Everything(names=None),
    "integer": Everything(wide=None),  # type: ignore[arg-type]
    "boolean": Everything(truth=None),  # type: ignore[arg-type]
    "uuid": Everything(key=None),  # type: ignore[arg-type]
    "struct": Everything(inner=None),  # type: ignore[arg-type]
    "element": Everything(names=[None]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("value", NULLS.values(), ids=NULLS.keys())
def test_null_where_none_is_allowed_is_not_encoded(value: Everything) -> None:
    with pytest.raises(codec.EncodeError, match="Everything v0"):
        codec.encoder(Everything, 0)(value)


WRONG = {
    "too wide": Everything(tiny=128, names=[]),
    "negative": Everything(port=-1, names=[]),
    "short uuid": Everything(key=bytes(15), names=[]),
    "short uuid in an array": Everything(keys=[bytes(17)], names=[]),
    "long string": Everything(legacy="x" * 32768, names=[]),
    "surrogate": Everything(name="\ud800", names=[]),
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG.keys())
def test_values_out_of_range_are_not_encoded(value: Everything) -> None:
    with pytest.raises(codec.EncodeError, match="Everything v2"):
        codec.encoder(Everything, 2)(value)


def test_tagged_fields_at_their_default_are_not_written() -> None:
    plain = codec.encoder(Everything, 4)(Everything())
    assert plain.endswith(b"\0")
    assert codec.encoder(Everything, 4)(Everything(tagged_number=10)) == plain[:-1] + b"\1\3\4\0\0\0\x0a"
    assert codec.encoder(Everything, 4)(Everything(tagged_name=None)) == plain[:-1] + b"\1\xc8\1\1\0"


def test_unknown_tags_are_skipped() -> None:
    plain = codec.encoder(Everything, 4)(Everything())
    stuffed = plain[:-1] + b"\3" + b"\2\1x" + b"\3\4\0\0\0\x0a" + b"\xff\x7f\2yz"
    assert codec.decoder(Everything, 4)(stuffed) == (Everything(tagged_number=10), len(stuffed))


# Bad input.

BAD = {
    "tag larger than its field": b"\1\3\5\0\0\0\x0a\0",
    "tag smaller than its field": b"\1\3\3\0\0\0\x0a",
    "too many tags": unsigned_varint(1025) + b"\x63\0" * 1025,
    "tag cut off": b"\1\x63\5ab",
    "tag count too long": b"\xff\xff\xff\xff\xff\1",
}


@pytest.mark.parametrize("section", BAD.values(), ids=BAD.keys())
def test_a_bad_tagged_section_is_a_decode_error(section: bytes) -> None:
    plain = codec.encoder(Everything, 4)(Everything())
    with pytest.raises(codec.DecodeError):
        codec.decoder(Everything, 4)(plain[:-1] + section)


@pytest.mark.parametrize(("version", "encoded"), [(0, b"\xff\xff\xff\xff"), (9, b"\0\0\0\0")])
def test_null_where_none_is_allowed_is_not_decoded(version: int, encoded: bytes) -> None:
    responses = {0: b"\0\0\0\0", 9: b"\0\0\0\0"}
    with pytest.raises(codec.DecodeError, match="brokers must not be null"):
        codec.decoder(MetadataResponse, version)((responses[9] if version else b"") + encoded)


def test_text_that_is_not_utf_8_is_a_decode_error() -> None:
    with pytest.raises(codec.DecodeError, match="utf-8"):
        codec.decoder(MetadataRequest, 1)(b"\0\0\0\1\0\2\xff\xff")


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_any_message_agrees_with_the_interpreter_and_survives_damage(cls: type[Any]) -> None:
    """Cut anywhere it is refused; changed anywhere it is refused or means what the interpreter says."""

    @settings(max_examples=8, derandomize=True, database=None, deadline=None)
    @given(seeds())
    def agree(seed: int) -> None:
        for version in standalone_versions(cls):
            random = Random(seed)
            message = Maker(random, version).make(cls)
            encoded = codec.encoder(cls, version)(message)
            assert encoded == interpreter.encode(message, version)
            _check_cut(cls, version, encoded, random)
            _check_changed(cls, version, encoded, random)

    agree()


def _check_cut(cls: type[Any], version: int, encoded: bytes, random: Random) -> None:
    decode = codec.decoder(cls, version)
    for size in random.sample(range(len(encoded)), min(10, len(encoded))):
        with pytest.raises(codec.DecodeError):
            decode(encoded[:size])


def _check_changed(cls: type[Any], version: int, encoded: bytes, random: Random) -> None:
    for _ in range(3):
        changed = bytearray(encoded or b"\0")
        for _ in range(random.randint(1, 3)):
            # The beginning holds most of the lengths and counts.
            place = random.randrange(random.choice((min(40, len(changed)), len(changed))))
            changed[place] = random.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        try:
            expected = interpreter.decode(cls, version, bytes(changed))
        except interpreter.Malformed:
            with pytest.raises(codec.DecodeError):
                codec.decoder(cls, version)(bytes(changed))
        else:
            assert repr(codec.decoder(cls, version)(bytes(changed))) == repr(expected)


LIES = {
    "legacy count": (MetadataRequest, 1, b"\x7f\xff\xff\xff", "more elements"),
    "compact count": (MetadataRequest, 12, b"\xff\xff\xff\xff\x0f", "more elements"),
    "count within the budget": (MetadataRequest, 1, (1000).to_bytes(4), "more elements"),
    "compact count within the budget": (MetadataRequest, 12, unsigned_varint(1001), "more elements"),
    "nested count": (FetchRequest, 4, bytes(17) + b"\0\0\0\1\0\1t" + b"\x7f\xff\xff\xff", "more elements"),
    "primitive count": (ConsumerProtocolSubscription, 0, b"\x7f\xff\xff\xff", "more elements"),
    "string size": (MetadataRequest, 12, b"\2" + bytes(16) + b"\xff\xff\xff\xff\x07ab", "MetadataRequest v12"),
}


@pytest.mark.parametrize(("cls", "version", "encoded", "reason"), LIES.values(), ids=LIES.keys())
def test_a_size_that_lies_allocates_nothing(cls: type[Any], version: int, encoded: bytes, reason: str) -> None:
    decode = codec.decoder(cls, version)
    tracemalloc.start()
    try:
        with pytest.raises(codec.DecodeError, match=reason):
            decode(encoded + bytes(100))
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_a_request_of_too_many_small_elements_is_refused() -> None:
    partition_count = codec.REQUEST_OBJECT_COUNT_MAX
    encoded = codec.encoder(FetchRequest, 4)(FetchRequest())[:-4] + b"\0\0\0\1\0\1t"
    encoded += partition_count.to_bytes(4) + codec.encoder(FetchRequest, 4)(FetchRequest())[:16] * partition_count
    tracemalloc.start()
    try:
        with pytest.raises(codec.DecodeError, match="too many elements"):
            codec.decoder(FetchRequest, 4)(encoded)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_many_small_arrays_share_one_budget() -> None:
    topic = b"\0\1t" + (1000).to_bytes(4) + bytes(16 * 1000)
    encoded = bytes(17) + (250).to_bytes(4) + topic * 250
    with pytest.raises(codec.DecodeError, match="too many elements"):
        codec.decoder(FetchRequest, 4)(encoded)
    fewer = bytes(17) + (50).to_bytes(4) + topic * 50
    request, position = codec.decoder(FetchRequest, 4)(fewer)
    assert position == len(fewer)
    assert request.topics[49].partitions[999] == FetchPartition(0, -1, 0, -1, -1, 0)
