"""The rules for Protobuf by case: what reads what, what does not and under which name."""

from __future__ import annotations

import pytest

pytest.importorskip("google.protobuf")

from millbeck.registry.compatibility import problems_between
from millbeck.registry.formats.interface import NEW_READS_OLD, Imported, Incompatibility
from millbeck.registry.formats.protobuf.schema import ProtobufFormat, ProtobufSchema

PROTOBUF = ProtobufFormat()


def reading(new: str, old: str, imported: tuple[Imported, ...] = ()) -> list[Incompatibility]:
    return PROTOBUF.parse(new, imported).problems_reading(PROTOBUF.parse(old, imported), NEW_READS_OLD)


def proto3(body: str) -> str:
    return f'syntax = "proto3";\n{body}'


def proto2(body: str) -> str:
    return f'syntax = "proto2";\n{body}'


def edition(body: str) -> str:
    return f'edition = "2023";\n{body}'


def fields(*declared: str) -> str:
    return proto3(f"message M {{ {' '.join(declared)} }} message O {{ int32 a = 1; }} enum E {{ ZERO = 0; ONE = 1; }}")


def oneof(*declared: str, rest: str = "", name: str = "o") -> str:
    return proto3(f"message M {{ oneof {name} {{ {' '.join(declared)} }} {rest} }}")


A = "int32 a = 1;"
READABLE = {
    "the same": (fields(A), fields(A)),
    "a field is added": (fields(A, "string b = 2;"), fields(A)),
    "a field is removed": (fields(), fields(A)),
    "a field is removed and reserved": (fields("reserved 1; reserved 'a';"), fields(A)),
    "a field has another name": (fields("int32 b = 1;"), fields(A)),
    "int32 as int64": (fields("int64 a = 1;"), fields(A)),
    "uint64 as int32": (fields(A), fields("uint64 a = 1;")),
    "bool as uint32": (fields("uint32 a = 1;"), fields("bool a = 1;")),
    "enum as int32": (fields(A), fields("E a = 1;")),
    "int64 as enum": (fields("E a = 1;"), fields("int64 a = 1;")),
    "sint32 as sint64": (fields("sint64 a = 1;"), fields("sint32 a = 1;")),
    "fixed32 as sfixed32": (fields("sfixed32 a = 1;"), fields("fixed32 a = 1;")),
    "fixed64 as sfixed64": (fields("sfixed64 a = 1;"), fields("fixed64 a = 1;")),
    "string as bytes": (fields("bytes a = 1;"), fields("string a = 1;")),
    "bytes as string": (fields("string a = 1;"), fields("bytes a = 1;")),
    "a string becomes repeated": (fields("repeated string a = 1;"), fields("string a = 1;")),
    "a message becomes repeated": (fields("repeated O a = 1;"), fields("O a = 1;")),
    "an optional field loses its presence": (fields(A), fields("optional int32 a = 1;")),
    "a field gets presence": (fields("optional int32 a = 1;"), fields(A)),
    "a message is added": (proto3("message M {} message N {}"), proto3("message M {}")),
    "messages change places": (proto3("message N {} message M {}"), proto3("message M {} message N {}")),
    "an enum is added": (proto3("message M {} enum E { Z = 0; }"), proto3("message M {}")),
    "an enum is removed": (proto3("message M {}"), proto3("message M {} enum E { Z = 0; }")),
    "a symbol is added": (proto3("enum E { Z = 0; A = 1; }"), proto3("enum E { Z = 0; }")),
    "a symbol is removed": (proto3("enum E { Z = 0; }"), proto3("enum E { Z = 0; A = 1; }")),
    "one field moves into a new oneof": (oneof(A, "string n = 2;"), proto3(f"message M {{ {A} }}")),
    "fields leave a oneof": (
        proto3(f"message M {{ {A} string b = 2; }}"),
        oneof(A, "string b = 2;"),
    ),
    "a oneof has another name": (oneof(A, "string b = 2;", name="p"), oneof(A, "string b = 2;")),
    "a field is added to a oneof": (oneof(A, "string b = 2;"), oneof(A)),
    "a oneof is removed with its fields": (proto3("message M {}"), oneof(A, "string b = 2;")),
    "map as entries": (
        proto3("message M { repeated E e = 1; message E { string key = 1; int32 value = 2; } }"),
        proto3("message M { repeated E e = 1; message E { string key = 1; int64 value = 2; } }"),
    ),
    "a map's values are widened": (
        proto3("message M { map<string, int64> m = 1; }"),
        proto3("message M { map<string, int32> m = 1; }"),
    ),
    "a map has another name": (
        proto3("message M { map<string, int32> n = 1; }"),
        proto3("message M { map<string, int32> m = 1; }"),
    ),
    "a recursive message": (
        proto3("message M { M next = 1; int64 n = 2; }"),
        proto3("message M { M next = 1; int32 n = 2; }"),
    ),
    "proto2 as proto3": (proto3("message M { int32 a = 1; }"), proto2("message M { optional int32 a = 1; }")),
    "proto3 as an edition": (edition("message M { int32 a = 1; }"), proto3("message M { int32 a = 1; }")),
    "required becomes optional": (
        proto2("message M { optional int32 a = 1; }"),
        proto2("message M { required int32 a = 1; }"),
    ),
    "a field becomes an extension": (
        proto2("message M { extensions 1; } extend M { optional int32 a = 1; }"),
        proto2("message M { optional int32 a = 1; }"),
    ),
    "a default changes": (
        proto2("message M { optional int32 a = 1 [default = 2]; }"),
        proto2("message M { optional int32 a = 1 [default = 1]; }"),
    ),
    "a service changes": (
        proto3("message M {} service S { rpc B(M) returns (M); }"),
        proto3("message M {} service S { rpc A(M) returns (M); }"),
    ),
    "options change": (
        proto3("option java_package = 'b'; message M {}"),
        proto3("option java_package = 'a'; message M {}"),
    ),
    "packed or not": (
        proto3("message M { repeated int32 a = 1 [packed = false]; }"),
        proto3("message M { repeated int32 a = 1; }"),
    ),
}


@pytest.mark.parametrize(("new", "old"), READABLE.values(), ids=READABLE.keys())
def test_what_can_be_read(new: str, old: str) -> None:
    assert reading(new, old) == []


UNREADABLE = {
    "int32 as string": (fields("string a = 1;"), fields(A), "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    "int32 as sint32": (fields("sint32 a = 1;"), fields(A), "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    "int32 as fixed32": (fields("fixed32 a = 1;"), fields(A), "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    "fixed32 as fixed64": (fields("fixed64 a = 1;"), fields("fixed32 a = 1;"), "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    "float as double": (fields("double a = 1;"), fields("float a = 1;"), "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    "a number is taken by another type": (
        fields("string b = 1;"),
        fields(A),
        "FIELD_SCALAR_KIND_CHANGED",
        "#/M/1",
    ),
    "a message as bytes": (fields("bytes a = 1;"), fields("O a = 1;"), "FIELD_KIND_CHANGED", "#/M/1"),
    "a string as an enum": (fields("E a = 1;"), fields("string a = 1;"), "FIELD_KIND_CHANGED", "#/M/1"),
    "a number as a message": (fields("O a = 1;"), fields(A), "FIELD_KIND_CHANGED", "#/M/1"),
    "a map as a string": (fields("string a = 1;"), fields("map<string, int32> a = 1;"), "FIELD_KIND_CHANGED", "#/M/1"),
    "another message": (
        proto3("message M { P a = 1; } message O {} message P {}"),
        proto3("message M { O a = 1; } message O {} message P {}"),
        "FIELD_NAMED_TYPE_CHANGED",
        "#/M/1",
    ),
    "another enum": (
        proto3("message M { F a = 1; } enum E { A = 0; } enum F { B = 0; }"),
        proto3("message M { E a = 1; } enum E { A = 0; } enum F { B = 0; }"),
        "FIELD_NAMED_TYPE_CHANGED",
        "#/M/1",
    ),
    "a number becomes repeated": (
        fields("repeated int32 a = 1;"),
        fields(A),
        "FIELD_NUMERIC_LABEL_CHANGED",
        "#/M/1",
    ),
    "a repeated enum becomes one": (
        fields("E a = 1;"),
        fields("repeated E a = 1;"),
        "FIELD_NUMERIC_LABEL_CHANGED",
        "#/M/1",
    ),
    "a message is removed": (proto3("message M {}"), proto3("message M {} message N {}"), "MESSAGE_REMOVED", "#/N"),
    "an inner message is removed": (
        proto3("message M {}"),
        proto3("message M { message N {} }"),
        "MESSAGE_REMOVED",
        "#/M.N",
    ),
    "another package": (
        proto3("package b; message M { O o = 1; } message O {}"),
        proto3("package a; message M { O o = 1; } message O {}"),
        "PACKAGE_CHANGED",
        "#/",
    ),
    "a package is added": (proto3("package b; message M {}"), proto3("message M {}"), "PACKAGE_CHANGED", "#/"),
    "a required field is added": (
        proto2("message M { required int32 a = 1; }"),
        proto2("message M {}"),
        "REQUIRED_FIELD_ADDED",
        "#/M/1",
    ),
    "a field becomes required": (
        proto2("message M { required int32 a = 1; }"),
        proto2("message M { optional int32 a = 1; }"),
        "REQUIRED_FIELD_ADDED",
        "#/M/1",
    ),
    "a field of an edition becomes required": (
        edition("message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }"),
        edition("message M { int32 a = 1; }"),
        "REQUIRED_FIELD_ADDED",
        "#/M/1",
    ),
    "a required field is removed": (
        proto2("message M {}"),
        proto2("message M { required int32 a = 1; }"),
        "REQUIRED_FIELD_REMOVED",
        "#/M/1",
    ),
    "a group becomes a message": (
        proto2("message M { optional G g = 1; message G { optional int32 a = 1; } }"),
        proto2("message M { optional group G = 1 { optional int32 a = 1; } }"),
        "FIELD_KIND_CHANGED",
        "#/M/1",
    ),
    "a message of an edition becomes delimited": (
        edition("message M { O o = 1 [features.message_encoding = DELIMITED]; } message O {}"),
        edition("message M { O o = 1; } message O {}"),
        "FIELD_KIND_CHANGED",
        "#/M/1",
    ),
    "a field of a oneof is removed": (
        oneof(A),
        oneof(A, "string b = 2;"),
        "ONEOF_FIELD_REMOVED",
        "#/M/2",
    ),
    "one of the fields leaves a oneof": (
        oneof(A, rest="string b = 2;"),
        oneof(A, "string b = 2;"),
        "ONEOF_FIELD_REMOVED",
        "#/M/2",
    ),
    "two fields move into a new oneof": (
        oneof(A, "string b = 2;"),
        proto3(f"message M {{ {A} string b = 2; }}"),
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "#/M/o",
    ),
    "a field moves into a oneof that was there": (
        oneof(A, "string b = 2;"),
        oneof(A, rest="string b = 2;"),
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "#/M/o",
    ),
    "two oneofs become one": (
        oneof(A, "string b = 2;"),
        proto3("message M { oneof o { int32 a = 1; } oneof p { string b = 2; } }"),
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "#/M/o",
    ),
    "a reserved number is used": (
        fields("string n = 1;"),
        fields("reserved 1;"),
        "RESERVED_FIELD_USED",
        "#/M/1",
    ),
    "a reserved name is used": (
        fields("string n = 1;"),
        fields("reserved 'n';"),
        "RESERVED_FIELD_USED",
        "#/M/1",
    ),
    "deep in an inner message": (
        proto3("message M { O o = 1; } message O { P p = 1; } message P { string a = 1; }"),
        proto3("message M { O o = 1; } message O { P p = 1; } message P { int32 a = 1; }"),
        "FIELD_SCALAR_KIND_CHANGED",
        "#/P/1",
    ),
    "a map's values": (
        proto3("message M { map<string, string> m = 1; }"),
        proto3("message M { map<string, int32> m = 1; }"),
        "FIELD_SCALAR_KIND_CHANGED",
        "#/M.MEntry/2",
    ),
}


@pytest.mark.parametrize(("new", "old", "kind", "path"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read_and_why(new: str, old: str, kind: str, path: str) -> None:
    assert [(each.kind, each.path) for each in reading(new, old)] == [(kind, path)]


def test_there_are_sixty_cases() -> None:
    assert len(READABLE) + len(UNREADABLE) >= 60


def test_types_of_references_are_compared() -> None:
    user = proto3('import "o.proto"; message M { O o = 1; }')
    old = PROTOBUF.parse(user, [Imported("o.proto", proto3("message O { int32 a = 1; }"))])
    new = PROTOBUF.parse(user, [Imported("o.proto", proto3("message O { string a = 1; }"))])
    assert [each.kind for each in new.problems_reading(old, NEW_READS_OLD)] == ["FIELD_SCALAR_KIND_CHANGED"]


def test_a_message_may_move_to_a_reference() -> None:
    moved = PROTOBUF.parse(
        proto3('package p; import "o.proto"; message M { O o = 1; }'),
        [Imported("o.proto", proto3("package p; message O { int32 a = 1; }"))],
    )
    before = PROTOBUF.parse(proto3("package p; message M { O o = 1; } message O { int32 a = 1; }"), ())
    assert moved.problems_reading(before, NEW_READS_OLD) == []


def test_a_referenced_message_may_move_to_another_package_and_is_compared_there() -> None:
    def using(package: str, body: str) -> ProtobufSchema:
        text = proto3(f'import "{package}.proto"; message M {{ {package}.O o = 1; }}')
        return PROTOBUF.parse(
            text, [Imported(f"{package}.proto", proto3(f"package {package}; message O {{ {body} }}"))]
        )

    before = using("a", "int32 a = 1;")
    assert using("b", "int32 a = 1;").problems_reading(before, NEW_READS_OLD) == []
    found = using("b", "string a = 1;").problems_reading(before, NEW_READS_OLD)
    assert [each.kind for each in found] == ["FIELD_SCALAR_KIND_CHANGED"]
    inline = PROTOBUF.parse(proto3("message M { O o = 1; } message O { int32 a = 1; }"), ())
    assert inline.problems_reading(before, NEW_READS_OLD) == []
    other = PROTOBUF.parse(proto3("message M { P o = 1; } message P { int32 a = 1; }"), ())
    assert [each.kind for each in other.problems_reading(before, NEW_READS_OLD)] == ["FIELD_NAMED_TYPE_CHANGED"]


def test_levels_compare_in_their_directions() -> None:
    one, two = (PROTOBUF.parse(proto3(text), ()) for text in ("message M {}", "message M {} message N {}"))
    assert problems_between(two, one, "BACKWARD") == []
    assert [each.kind for each in problems_between(two, one, "FORWARD")] == ["MESSAGE_REMOVED"]
    assert [each.kind for each in problems_between(one, two, "FULL")] == ["MESSAGE_REMOVED"]


def test_messages_that_refer_to_each_other_many_times_are_compared_once() -> None:
    def chain(leaf: str) -> str:
        messages = [f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; M{n + 1} c = 3; }}" for n in range(60)]
        return proto3(" ".join([*messages, f"message M60 {{ {leaf} a = 1; }}"]))

    assert [each.path for each in reading(chain("string"), chain("int32"))] == ["#/M60/1"]
