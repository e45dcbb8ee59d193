"""All formats that the registry supports."""

from __future__ import annotations

from millbeck.registry.formats.avro import AvroFormat
from millbeck.registry.formats.interface import SchemaFormat
from millbeck.registry.formats.json_schema.schema import JsonFormat
from millbeck.registry.formats.protobuf.schema import ProtobufFormat


def every_format() -> list[SchemaFormat]:
    return [AvroFormat(), ProtobufFormat(), JsonFormat()]
