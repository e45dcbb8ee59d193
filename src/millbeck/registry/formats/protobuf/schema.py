"""The Protobuf format: a .proto, or the base64 of a FileDescriptorProto, as some clients send it.

A .proto is stored as it was sent. A descriptor in base64 is stored as the equivalent .proto.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import cached_property

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from millbeck.client.schemas.errors import SchemaError
from millbeck.client.schemas.errors import SchemaTooLarge as TextTooLarge
from millbeck.client.schemas.model import BASE64_TEXT
from millbeck.client.schemas.proto_tokens import ProtoLimits
from millbeck.client.schemas.protoc import compiled
from millbeck.registry.errors import InvalidSchema, SchemaTooLarge
from millbeck.registry.formats.interface import Form, Imported, Incompatibility, Limits, Policy, Roles
from millbeck.registry.formats.protobuf.compatibility import problems_reading
from millbeck.registry.formats.protobuf.files import ProtoFiles
from millbeck.registry.formats.protobuf.printing import printed


class ProtobufSchema:
    """A compiled schema."""

    def __init__(self, text: str, files: ProtoFiles) -> None:
        self._text = text
        self._files = files

    def text(self, form: Form) -> str:
        match form:
            case Form.NORMALIZED:
                return self._normalized
            case Form.COMPARED:
                return self._compared
            case Form.SERIALIZED:
                return base64.b64encode(self._files.main.SerializeToString(deterministic=True)).decode()
        return self._text

    @cached_property
    def _normalized(self) -> str:
        return printed(self._files.main, self._files.pool, is_normal=True)

    @cached_property
    def _compared(self) -> str:
        return printed(self._files.main, self._files.pool, is_normal=False)

    def problems_reading(
        self, writer: ProtobufSchema, roles: Roles, policy: Policy = Policy.STRICT
    ) -> list[Incompatibility]:
        return problems_reading(self._files, writer._files, roles)


class ProtobufFormat:
    name = "PROTOBUF"

    def __init__(self, limits: Limits | None = None) -> None:
        limits = limits or Limits()
        self._limits = ProtoLimits(
            text_length_max=limits.text_length_max,
            depth_max=limits.depth_max,
            name_length_max=limits.name_length_max,
            import_count_max=limits.reference_count_max,
        )

    def parse(self, text: str, imported: Sequence[Imported], *, is_new: bool = True) -> ProtobufSchema:
        try:
            imports: list[tuple[str, str]] = []
            for each in imported:
                imports.append((each.name, self._as_proto(each.text, imports)))
            written = self._as_proto(text, imports)
            return ProtobufSchema(written, ProtoFiles.of_set(compiled(written, imports, self._limits)))
        except TextTooLarge as error:
            raise SchemaTooLarge(str(error)) from None
        except SchemaError as error:
            raise InvalidSchema(f"Invalid schema: {error}") from None

    def _as_proto(self, text: str, imports: list[tuple[str, str]]) -> str:
        """The text as a .proto: a descriptor in base64 is converted, any other text is unchanged."""
        if len(text) > self._limits.text_length_max or not BASE64_TEXT.match(text):
            return text
        file = FileDescriptorProto()
        try:
            file.ParseFromString(base64.b64decode(text))
        except (binascii.Error, DecodeError):
            return text
        return printed(file, self._pool_for(file, imports), is_normal=False)

    def _pool_for(self, file: FileDescriptorProto, imports: list[tuple[str, str]]) -> DescriptorPool:
        """A descriptor pool with the extensions that the options of the file may use."""
        named = "".join(f'import "{name}";\n' for name in file.dependency)
        return ProtoFiles.of_set(compiled(f'syntax = "proto3";\n{named}', imports, self._limits)).pool
