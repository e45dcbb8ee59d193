"""Protobuf schemas: what is accepted, the forms of their text, and hostile texts, which are refused soon."""

from __future__ import annotations

import base64
import time

import pytest

pytest.importorskip("google.protobuf")

from google.protobuf.descriptor_pb2 import FileDescriptorProto

from millbeck.registry.errors import InvalidSchema, RegistryError, SchemaTooLarge
from millbeck.registry.formats.interface import Form, Imported, Limits
from millbeck.registry.formats.protobuf.schema import ProtobufFormat

PROTOBUF = ProtobufFormat()
REFUSED_SECONDS_MAX = 5.0
"""On an idle machine it is less than one; this one may be loaded."""

ORDER = """// an order
syntax = "proto3";
package shop;

import "google/protobuf/timestamp.proto";

message Order {
  string   id = 1;   // kept as it was sent
  google.protobuf.Timestamp at = 2;
}
"""
EVERYTHING = {
    "proto3": """
        syntax = "proto3";
        package a.b;
        import public "other.proto";
        import "google/protobuf/descriptor.proto";
        import "confluent/meta.proto";
        option java_package = "com.a";
        option (mine) = { names: ["x", "y"] };
        extend google.protobuf.FileOptions { Mine mine = 50000; }
        message Mine { repeated string names = 1; }
        message M {
          option (confluent.message_meta) = { doc: "it's" tags: "PII" };
          reserved 20, 30 to 40, 50 to max;
          reserved "gone", "away";
          optional int32 maybe = 3 [deprecated = true, json_name = "perhaps"];
          repeated int64 numbers = 1 [packed = false];
          oneof choice { string text = 5; Inner inner = 6; bytes raw = 4; }
          map<string, Inner> by_name = 7;
          p.Other other = 8 [(confluent.field_meta).params = { key: "a" value: "b" }];
          message Inner { E e = 1; enum E { Z = 0; B = -1; A = 1; } }
          enum Alias { option allow_alias = true; N = 0; ONE = 1; UNO = 1; reserved 5 to max; reserved "X"; }
        }
        service S { rpc Call(stream M) returns (stream M) { option deprecated = true; } rpc Other(M) returns (M); }
        """,
    "proto2": """
        message M {
          required string a = 1 [default = "say \\"hi\\"\\n"];
          optional bytes b = 2 [default = "\\001\\xff"];
          optional double d = 3 [default = -inf];
          optional float f = 4 [default = 1.5e10];
          optional bool t = 5 [default = true];
          optional E e = 6 [default = TWO];
          repeated group G = 7 { optional int32 x = 1; }
          extensions 100 to 199, 500 to max;
          extend M { optional int32 inside = 150; }
          enum E { ONE = 1; TWO = 2; }
        }
        extend M { repeated M more = 100; optional group Far = 101 { optional int32 y = 1; } }
        """,
    "edition": """
        edition = "2023";
        option features.field_presence = IMPLICIT;
        message M {
          int32 a = 1 [features.field_presence = EXPLICIT];
          repeated int32 b = 2 [features.repeated_field_encoding = EXPANDED];
          M c = 3 [features.message_encoding = DELIMITED];
          reserved foo, bar;
          enum E { option features.enum_type = CLOSED; A = 1; }
        }
        """,
}
OTHER = (Imported("other.proto", 'syntax = "proto3"; package p; message Other {}'),)


def test_a_text_is_kept_as_it_was_sent() -> None:
    assert PROTOBUF.parse(ORDER, ()).text(Form.CANONICAL) == ORDER


@pytest.mark.parametrize("text", EVERYTHING.values(), ids=EVERYTHING.keys())
@pytest.mark.parametrize("form", [Form.COMPARED, Form.NORMALIZED])
def test_what_is_printed_means_the_same(text: str, form: Form) -> None:
    parsed = PROTOBUF.parse(text, OTHER)
    printed = PROTOBUF.parse(parsed.text(form), OTHER)
    assert printed.text(form) == parsed.text(form)
    assert printed.text(Form.NORMALIZED) == parsed.text(Form.NORMALIZED)
    if form is Form.COMPARED:
        assert printed.text(Form.SERIALIZED) == parsed.text(Form.SERIALIZED)


def test_the_descriptor_in_base64_is_the_same_schema() -> None:
    parsed = PROTOBUF.parse(ORDER, ())
    encoded = parsed.text(Form.SERIALIZED)
    file = FileDescriptorProto.FromString(base64.b64decode(encoded))
    assert (file.package, [each.name for each in file.message_type]) == ("shop", ["Order"])
    from_descriptor = PROTOBUF.parse(encoded, ())
    assert from_descriptor.text(Form.COMPARED) == parsed.text(Form.COMPARED)
    assert from_descriptor.text(Form.CANONICAL).startswith('syntax = "proto3";\npackage shop;')


def test_layout_and_comments_make_no_other_schema_and_names_do() -> None:
    compared = PROTOBUF.parse(ORDER, ()).text(Form.COMPARED)
    assert PROTOBUF.parse(ORDER.replace("  ", "\t").replace("an order", "?"), ()).text(Form.COMPARED) == compared
    assert PROTOBUF.parse(ORDER.replace("id", "key"), ()).text(Form.COMPARED) != compared


def test_the_normal_form_sorts_what_has_no_order() -> None:
    one = 'syntax = "proto3"; message M { string b = 2; int32 a = 1; } enum E { Z = 0; B = 2; A = 1; }'
    two = 'syntax = "proto3"; message M { int32 a = 1; string b = 2; } enum E { Z = 0; A = 1; B = 2; }'
    first, second = PROTOBUF.parse(one, ()), PROTOBUF.parse(two, ())
    assert first.text(Form.NORMALIZED) == second.text(Form.NORMALIZED)
    assert first.text(Form.COMPARED) != second.text(Form.COMPARED)


def test_files_of_google_and_confluent_need_no_reference() -> None:
    names = [
        *(f"google/protobuf/{name}.proto" for name in ("any", "duration", "struct", "timestamp", "wrappers")),
        *(f"confluent/{name}.proto" for name in ("meta", "type/decimal", "type/variant", "types/decimal")),
    ]
    imports = "".join(f'import "{name}";' for name in names)
    parsed = PROTOBUF.parse(f'syntax = "proto3"; {imports} message M {{ confluent.type.Decimal d = 1; }}', ())
    assert ".confluent.type.Decimal d = 1;" in parsed.text(Form.NORMALIZED)


def test_types_of_google_need_no_reference() -> None:
    pytest.importorskip("google.type")
    text = 'syntax = "proto3"; import "google/type/money.proto"; message M { google.type.Money m = 1; }'
    assert ".google.type.Money m = 1;" in PROTOBUF.parse(text, ()).text(Form.NORMALIZED)


def test_confluents_files_are_those_that_its_client_has() -> None:
    pytest.importorskip("confluent_kafka")
    from confluent_kafka.schema_registry.confluent import meta_pb2
    from confluent_kafka.schema_registry.confluent.type import decimal_pb2, variant_pb2

    from millbeck.client.schemas.known_protos import known_proto

    for theirs in (meta_pb2, decimal_pb2, variant_pb2):
        file = FileDescriptorProto.FromString(theirs.DESCRIPTOR.serialized_pb)
        text = known_proto(file.name)
        assert text is not None
        encoded = base64.b64encode(theirs.DESCRIPTOR.serialized_pb).decode()
        ours, known = (PROTOBUF.parse(each, ()).text(Form.COMPARED) for each in (text, encoded))
        assert _without_options(ours) == _without_options(known)


def _without_options(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("option ")]


def test_an_error_names_line_and_reason() -> None:
    with pytest.raises(InvalidSchema, match=r"schema\.proto:3:\d+: \"Missing\" is not defined"):
        PROTOBUF.parse('syntax = "proto3";\nmessage M {\nMissing m = 1; }', ())


def test_an_import_without_reference_is_named() -> None:
    with pytest.raises(InvalidSchema, match=r'"a/b\.proto" is imported, and is not among the references'):
        PROTOBUF.parse('syntax = "proto3"; import "a/b.proto";', ())


def nested(depth: int) -> str:
    return "".join(f"message M{n} {{ " for n in range(depth)) + "}" * depth


HOSTILE = {
    "too long": "/" * 2_000_000,
    "a name of a megabyte": f'syntax = "proto3"; message {"M" * 1_000_000} {{}}',
    "10,000 deep": nested(10_000),
    "options 10,000 deep": "option (x) = " + "{ a " * 10_000,
    "unclosed comment": "/*" + "a" * 1_000_000,
    "quotes": '"' * 1_000_000,
    "a file of this machine": 'import "/etc/passwd";',
    "a file above": 'import "../../etc/passwd";',
    "itself": 'import "schema.proto"; message M {}',
    "not text": "\ud800",
    "a null": 'syntax = "proto3"; message M\0 {}',
    "tokens": "message M {}" * 80_000,
    "huge range": 'syntax = "proto3"; message M { int32 a = 99999999999999999999; }',
    "base64 of nothing": "AAAA" * 1000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_refused_soon(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(RegistryError):
        PROTOBUF.parse(text, ())
    assert time.perf_counter() - start < REFUSED_SECONDS_MAX


def test_circular_imports_are_refused() -> None:
    a, b = Imported("a.proto", 'import "b.proto";'), Imported("b.proto", 'import "a.proto";')
    with pytest.raises(InvalidSchema, match="recursively imports itself"):
        PROTOBUF.parse('import "a.proto";', (a, b))


def test_the_bounds_are_those_of_the_format() -> None:
    with pytest.raises(SchemaTooLarge):
        ProtobufFormat(Limits(depth_max=2)).parse(nested(3), ())


def test_what_a_schema_imports_many_times_is_compiled_once() -> None:
    """Each file imports the one below it twice over: without care, 2^20 readings."""
    files = [Imported("f0.proto", 'syntax = "proto3";')]
    for n in range(1, 21):
        bodies = f'syntax = "proto3"; import public "f{n - 1}.proto"; import "g{n - 1}.proto";'
        files += [Imported(f"f{n}.proto", bodies), Imported(f"g{n - 1}.proto", f'import "f{n - 1}.proto";')]
    start = time.perf_counter()
    PROTOBUF.parse('syntax = "proto3"; import "f20.proto"; message M {}', files)
    assert time.perf_counter() - start < REFUSED_SECONDS_MAX
