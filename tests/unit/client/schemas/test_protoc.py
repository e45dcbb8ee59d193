"""What protoc is given: bounded texts, only the files of the schema, and no others of the machine."""

from __future__ import annotations

import pytest

pytest.importorskip("google.protobuf")

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from millbeck.client.schemas.errors import SchemaInvalid, SchemaTooLarge
from millbeck.client.schemas.proto_tokens import ProtoLimits, imports_of
from millbeck.client.schemas.protoc import compiled

LIMITS = ProtoLimits()


def test_imports_are_found_whatever_stands_around_them() -> None:
    text = """
        // import "comment.proto";
        /* import "other.proto"; */
        syntax = "proto3"; import "a.proto"; import public 'b/c.proto';
        import /* here */ weak "d.proto";
        message M { string import = 1; option (x) = { import: "no.proto" }; }
        """
    assert imports_of(text, LIMITS) == ["a.proto", "b/c.proto", "d.proto"]


def test_a_comment_in_a_comment_is_refused_before_protoc_reports_each() -> None:
    for text in ("/* /* */", "/*" * 200_000, "message M {} /* a */ /* /* */"):
        with pytest.raises(SchemaInvalid, match="cannot be nested"):
            imports_of(text, LIMITS)
    assert imports_of("/* a */ // /* b\n /* * / **/", LIMITS) == []


def test_the_file_comes_last_and_what_it_does_not_need_not_at_all() -> None:
    made = compiled(
        'import "a.proto"; message M { optional A a = 1; }',
        {"a.proto": "message A {}", "schema.proto": "message Other {}", "b.proto": "broken"}.items(),
    )
    assert [each.name for each in FileDescriptorSet.FromString(made).file] == ["a.proto", "_schema.proto"]


@pytest.mark.parametrize("name", ["/a", "../a", "a/../b", "", "a//b", "./a", "a\\\\b", "a" * 300])
def test_names_that_lead_out_of_the_folder_are_refused(name: str) -> None:
    with pytest.raises(SchemaInvalid):
        compiled(f'import "{name}";', {name: "message A {}"}.items())


def test_a_compilation_that_takes_too_long_is_ended() -> None:
    with pytest.raises(SchemaTooLarge, match="takes more than"):
        compiled("message M {}" * 1000, limits=ProtoLimits(seconds_max=0.0001))


def test_what_protoc_may_write_is_bounded() -> None:
    text = "".join(f"message M{n} {{ optional int32 a = 1; }}" for n in range(500))
    with pytest.raises((SchemaTooLarge, SchemaInvalid)):
        compiled(text, limits=ProtoLimits(output_bytes_max=512))
