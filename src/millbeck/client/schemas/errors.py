"""The errors of schemas, of registries, and of records written with schemas."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema or its registry cannot be used; the message has the reason."""


class UnknownSchema(SchemaError):
    """The registry has no schema with this id, or none for this subject."""


class SchemaInvalid(SchemaError):
    """The text is not a schema of its type."""


class SchemaTooLarge(SchemaError):
    """The schema exceeds a limit on size, depth, references or time."""


class BadRecord(Exception):
    """A record cannot be decoded, or a value cannot be encoded; the message has the reason."""
