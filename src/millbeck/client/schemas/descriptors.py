"""The descriptors of a Protobuf schema, given as a .proto or as a descriptor in base64. Needs protobuf.

Registries return either form. protoc is needed for a .proto, and for imports that are known only as text (Confluent's
own).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Final

from millbeck.client.schemas.errors import SchemaError, SchemaInvalid
from millbeck.client.schemas.known_protos import known_proto
from millbeck.client.schemas.model import BASE64_TEXT, PROTOBUF, Schema
from millbeck.client.schemas.protoc import MAIN_FILE, compiled
from millbeck.kernel.extras import needs_extra

with needs_extra("schemas"):
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
    from google.protobuf.message import DecodeError

_KEPT_MAX: Final = 256
_HEXADECIMAL: Final = re.compile(r"(?:[0-9a-f]{2})+")


@lru_cache(maxsize=_KEPT_MAX)
def descriptor_set(schema: Schema) -> bytes:
    """The files of a schema, imported files first; raises `SchemaError`.

    The text is a .proto, the base64 of its FileDescriptorProto, or a whole descriptor set in hexadecimal.
    """
    if schema.kind != PROTOBUF:
        raise SchemaError(f"the schema is {schema.kind}, not {PROTOBUF}")
    if _HEXADECIMAL.fullmatch(schema.text):
        return bytes.fromhex(schema.text)
    if not BASE64_TEXT.match(schema.text):
        return compiled(schema.text, schema.references)
    files: dict[str, FileDescriptorProto] = {}
    texts = dict(schema.references)
    main = next(name for name in (MAIN_FILE, f"_{MAIN_FILE}") if name not in texts)
    _add(main, {**texts, main: schema.text}, files)
    return bytes(FileDescriptorSet(file=list(files.values())).SerializeToString())


def _add(name: str, texts: dict[str, str], files: dict[str, FileDescriptorProto]) -> None:
    """Add a file after those that it imports."""
    if name in files:
        return
    for file in _files(name, texts):
        for imported in file.dependency:
            if imported == name:
                raise SchemaInvalid(f"{name} imports itself")
            _add(imported, texts, files)
        files.setdefault(file.name, file)


def _files(name: str, texts: dict[str, str]) -> list[FileDescriptorProto]:
    text = texts.get(name)
    if text is not None and BASE64_TEXT.match(text):
        try:
            file = FileDescriptorProto.FromString(base64.b64decode(text))
        except (binascii.Error, DecodeError) as error:
            raise SchemaInvalid(f"{name} is not a descriptor: {error}") from None
        file.name = name
        return [file]
    if text is None and known_proto(name) is None:
        return [_of_module(name)]
    given = text if text is not None else known_proto(name)
    assert given is not None
    made = FileDescriptorSet.FromString(compiled(given, [(each, texts[each]) for each in texts if each != name])).file
    made[-1].name = name
    return list(made)


def _of_module(name: str) -> FileDescriptorProto:
    """The descriptor of a file that an installed package has generated code for."""
    if not name.startswith("google/"):
        raise SchemaInvalid(f'"{name[:200]}" is imported, but is not among the references of the schema')
    try:
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
    except ImportError:
        raise SchemaInvalid(f'"{name[:200]}" is imported, but is not among the references of the schema') from None
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def message_at(file: FileDescriptor, indexes: Sequence[int]) -> Descriptor:
    """The message with these indexes (`wire_format`); raises `SchemaError`."""
    messages: Sequence[Descriptor] = list(file.message_types_by_name.values())
    found: Descriptor | None = None
    for index in indexes:
        if not 0 <= index < len(messages):
            raise SchemaError(f"the schema has no message at {list(indexes)}")
        found = messages[index]
        messages = list(found.nested_types)
    assert found is not None, "an empty path means the first message"
    return found


def indexes_of(message: Descriptor) -> list[int]:
    """The message indexes of a message, from the file down: the index of the outermost message first, its own last."""
    indexes: list[int] = []
    around = message.containing_type
    while around is not None:
        indexes.append([inner.full_name for inner in around.nested_types].index(message.full_name))
        message, around = around, around.containing_type
    indexes.append(list(message.file.message_types_by_name).index(message.name))
    return indexes[::-1]
