"""The errors of the registry, each with its HTTP status and ``error_code``.

Clients check the code, so the codes are those of Confluent's public API reference. The message has a remedy if that is
not obvious.
"""

from __future__ import annotations

from typing import ClassVar


class RegistryError(Exception):
    """An expected failure of a request. Subclasses set the code; the status is its first three digits."""

    code: ClassVar[int]
    status: ClassVar[int]

    def __init_subclass__(cls, *, code: int = 0) -> None:
        if code:
            cls.code = code
            cls.status = int(str(code)[:3])

    @property
    def message(self) -> str:
        return str(self)


class SubjectNotFound(RegistryError, code=40401):
    """The subject has no versions."""


class VersionNotFound(RegistryError, code=40402):
    """The subject has no such version."""


class SchemaNotFound(RegistryError, code=40403):
    """No schema has this id, or the subject has no such schema."""


class SubjectSoftDeleted(RegistryError, code=40404):
    """The subject was soft-deleted already."""


class SubjectNotSoftDeleted(RegistryError, code=40405):
    """A subject must be soft-deleted before it is deleted permanently."""


class VersionSoftDeleted(RegistryError, code=40406):
    """The version was soft-deleted already."""


class VersionNotSoftDeleted(RegistryError, code=40407):
    """A version must be soft-deleted before it is deleted permanently."""


class CompatibilityNotConfigured(RegistryError, code=40408):
    """No settings are set for the subject."""


class ModeNotConfigured(RegistryError, code=40409):
    """No mode is set for the subject."""


class IncompatibleSchema(RegistryError, code=409):
    """The schema is not compatible as the subject's compatibility level requires."""


class InvalidSchema(RegistryError, code=42201):
    """The text is not a valid schema of its type, or one of its references does not exist."""


class InvalidVersion(RegistryError, code=42202):
    """The version is neither a positive number nor ``latest``."""


class InvalidCompatibility(RegistryError, code=42203):
    """The compatibility level does not exist."""


class InvalidMode(RegistryError, code=42204):
    """The mode does not exist."""


class OperationNotPermitted(RegistryError, code=42205):
    """The mode of the subject does not allow this."""


class ReferenceExists(RegistryError, code=42206):
    """Other schemas refer to the version."""


class IdDoesNotMatch(RegistryError, code=42207):
    """The id belongs to another schema."""


class InvalidSubject(RegistryError, code=42208):
    """The subject's name is empty or has characters that are not allowed."""


class SchemaTooLarge(RegistryError, code=42209):
    """The schema exceeds a limit on size, depth or references."""


class InvalidRuleSet(RegistryError, code=42210):
    """The rule set is malformed."""


class ContextNotEmpty(RegistryError, code=42211):
    """The context still has subjects."""


class Forbidden(RegistryError, code=403):
    """The user does not have the role that the request needs."""


class NoSuchPath(RegistryError, code=404):
    """The path does not exist."""


class UnreadableBody(RegistryError, code=422):
    """The body is not the expected JSON object."""


class StoreFailed(RegistryError, code=50001):
    """The log refused the write."""


class StoreTimeout(RegistryError, code=50002):
    """The log did not confirm the write in time; it may have succeeded."""


class ForwardingFailed(RegistryError, code=50003):
    """The leader did not answer a forwarded request."""


class UnknownLeader(RegistryError, code=50004):
    """No instance is the leader at the moment."""
