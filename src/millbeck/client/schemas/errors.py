"""The errors of schemas, of registries, and of records written with schemas."""

from __future__ import annotations


class SchemaError(Exception):
    """A schema, or the registry that has it, cannot be used; the message says why."""


class UnknownSchema(SchemaError):
    """The registry has no schema with this id, or none for this subject."""


class SchemaInvalid(SchemaError):
    """The text is not a schema of its type."""


class SchemaTooLarge(SchemaError):
    """The schema exceeds a limit on size, depth, references or time."""


class BadRecord(Exception):
    """A record cannot be decoded, or a value not be encoded; the message says why."""
